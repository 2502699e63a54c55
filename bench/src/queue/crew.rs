use std::pin::Pin;
use std::time::Duration;

use anyhow::ensure;
use apalis::prelude::*;
use posthaste_jobs::JobId;
use posthaste_queue::{Ack, Queue};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::options::Options;
use super::work::Work;

/// How long the last acknowledgements may take.
const LAST: Duration = Duration::from_secs(10);

type Running = Pin<Box<dyn Future<Output = Result<(), WorkerError>> + Send>>;

/// A worker on a queue, and the queue's keeper beside it.
#[derive(Debug)]
pub(crate) struct Crew {
    queue: Queue,
    stop_worker: CancellationToken,
    worker: JoinSet<()>,
    stop_keeper: CancellationToken,
    keeper: JoinSet<()>,
}

impl Crew {
    /// Starts both.
    pub(crate) fn start(queue: &Queue, options: &Options, work: Work) -> Self {
        let (stop_worker, stop_keeper) = (CancellationToken::new(), CancellationToken::new());
        let (mut worker, mut keeper) = (JoinSet::new(), JoinSet::new());
        keeper.spawn({
            let (queue, stop) = (queue.clone(), stop_keeper.clone());
            async move { queue.keep(stop).await }
        });
        let running = run(queue, options, work, stop_worker.clone());
        // A worker that ends early handles no more, and that is noticed.
        worker.spawn(async move { drop(running.await) });
        Self {
            queue: queue.clone(),
            stop_worker,
            worker,
            stop_keeper,
            keeper,
        }
    }

    /// Waits until the queue holds nothing: all that was handled is acknowledged.
    pub(crate) async fn until_empty(&self) -> anyhow::Result<()> {
        let start = Instant::now();
        while self.queue.depth().await? != posthaste_queue::Depth::default() {
            ensure!(start.elapsed() < LAST, "the last acknowledgements do not arrive");
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// Stops the worker, then the keeper.
    pub(crate) async fn stop(mut self) {
        self.stop_worker.cancel();
        while self.worker.join_next().await.is_some() {}
        self.stop_keeper.cancel();
        while self.keeper.join_next().await.is_some() {}
    }
}

/// Makes the worker. Handlers that do nothing run in it; those that settle are tasks beside it, as in the product.
fn run(queue: &Queue, options: &Options, work: Work, stop: CancellationToken) -> Running {
    let handlers = TaskTracker::new();
    let beside = matches!(work, Work::Settling(..));
    let worker = WorkerBuilder::new("bench")
        .backend(queue.backend(options.batch.into()))
        .concurrency(options.concurrency.into())
        .data(work);
    let stopped = async move {
        stop.cancelled().await;
        Ok::<(), WorkerError>(())
    };
    // Boxed: the compiler does not see through the types below that it may move between threads.
    if beside {
        let worker = worker.parallelize(move |job| handlers.spawn(job)).build(handle);
        Box::pin(worker.run_until(stopped))
    } else {
        Box::pin(worker.build(handle).run_until(stopped))
    }
}

async fn handle(job: JobId, work: Data<Work>) -> Result<Ack, BoxDynError> {
    Ok(work.run(job).await)
}
