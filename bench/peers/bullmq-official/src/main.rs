//! Pushes and consumes jobs that do nothing with `bullmq-official`, and prints one JSON object:
//!
//! ```sh
//! posthaste-bench-bullmq-official REDIS_URL JOBS CONCURRENCY
//! ```
//!
//! As its documentation advises for speed: jobs are added in bulk, one worker runs many at once, what is done is removed
//! at once, and no metrics are kept.

use std::env;
use std::error::Error;
use std::time::Instant;

use bullmq::options::RedisConnectionOptions;
use bullmq::queue::BulkJob;
use bullmq::types::RemoveOnFinish;
use bullmq::worker::WorkerEvent;
use bullmq::{JobOptions, Queue, QueueOptions, Worker, WorkerOptions};
use serde_json::{Value, json};

const NAME: &str = "bench";
const BULK: usize = 1000;
const WARM_UP: usize = 5000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, jobs, concurrency] = &arguments[..] else {
        return Err("usage: REDIS_URL JOBS CONCURRENCY".into());
    };
    let connection = RedisConnectionOptions::new().url(url);
    let (jobs, concurrency) = (jobs.parse()?, concurrency.parse()?);
    let queue = Queue::with_options(NAME, QueueOptions::new().connection(connection.clone())).await?;
    let worker = WorkerOptions::new().connection(connection).concurrency(concurrency);

    push(&queue, WARM_UP).await?;
    consume(&worker, WARM_UP).await?;
    let push_per_s = push(&queue, jobs).await?;
    let consume_per_s = consume(&worker, jobs).await?;

    println!("{}", json!({ "push_per_s": push_per_s, "consume_per_s": consume_per_s }));
    Ok(())
}

/// Adds so many, and returns how many a second.
async fn push(queue: &Queue, count: usize) -> Result<f64, Box<dyn Error>> {
    let options = JobOptions::new()
        .remove_on_complete(RemoveOnFinish::Bool(true))
        .remove_on_fail(RemoveOnFinish::Bool(true));
    let payload = json!({ "endpoint": "receiver" });
    let start = Instant::now();
    let mut left = count;
    while left > 0 {
        let job = |_| BulkJob::with_options("job", &payload, options.clone());
        let bulk: Vec<BulkJob> = (0..left.min(BULK)).map(job).collect();
        left -= bulk.len();
        queue.add_bulk(bulk).await?;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

/// Works until so many are completed, and returns how many a second.
async fn consume(options: &WorkerOptions, count: usize) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let worker = Worker::with_options(NAME, |_, _| async { Ok(Value::Null) }, options.clone()).await?;
    let mut completed = 0;
    while completed < count {
        match worker.next_event().await {
            Some(WorkerEvent::Completed { .. }) => completed += 1,
            Some(WorkerEvent::Failed { error, .. } | WorkerEvent::Error(error)) => return Err(error.into()),
            Some(_) => {}
            None => return Err("the worker ended".into()),
        }
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    worker.close(5000).await?;
    Ok(rate)
}
