// Pushes and consumes jobs that do nothing with BullMQ, and prints one JSON object:
//
//     node bench.js REDIS_URL JOBS CONCURRENCY
//
// As its documentation advises for speed: jobs are added in bulk, one worker runs many at once, what is done is
// removed at once, and neither metrics nor a history of events is kept.

import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';
import { Queue, Worker } from 'bullmq';

const NAME = 'bench';
const BULK = 1000;
const WARM_UP = 5000;
const PAYLOAD = { endpoint: 'receiver' };

const [url, jobs, concurrency] = process.argv.slice(2);
const { hostname: host, port } = new URL(url);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const opts = { removeOnComplete: true, removeOnFail: true };
const queue = new Queue(NAME, { connection, streams: { events: { maxLen: 0 } } });

async function push(count) {
  const start = performance.now();
  for (let pushed = 0; pushed < count; pushed += BULK) {
    const length = Math.min(BULK, count - pushed);
    await queue.addBulk(Array.from({ length }, () => ({ name: 'job', data: PAYLOAD, opts })));
  }
  return count / ((performance.now() - start) / 1000);
}

async function consume(count) {
  const start = performance.now();
  const worker = new Worker(NAME, async () => {}, { connection, concurrency: Number(concurrency) });
  await new Promise((resolve, reject) => {
    let completed = 0;
    worker.on('completed', () => (completed += 1) === count && resolve());
    worker.on('failed', (_job, error) => reject(error));
    worker.on('error', reject);
  });
  const rate = count / ((performance.now() - start) / 1000);
  await worker.close();
  return rate;
}

await queue.waitUntilReady();
await push(WARM_UP);
await consume(WARM_UP);
const pushPerS = await push(Number(jobs));
const consumePerS = await consume(Number(jobs));
await queue.close();

const { version } = createRequire(import.meta.url)('bullmq/package.json');
console.log(JSON.stringify({ version, push_per_s: pushPerS, consume_per_s: consumePerS }));
