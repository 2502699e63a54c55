use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use apalis::layers::WorkerBuilderExt;
use apalis_core::error::{BoxDynError, WorkerError};
use apalis_core::task::data::Data;
use apalis_core::worker::builder::WorkerBuilder;
use apalis_core::worker::ext::parallelize::ParallelizeExt;
use posthaste_jobs::{Clock, JobId, RetryPolicy, chain};
use posthaste_outbound::Endpoints;
use posthaste_queue::{Ack, Queue};
use posthaste_store::Ledger;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info};

use crate::config::Config;
use crate::desk::Desk;
use crate::keeper::Keeper;
use crate::pauser::Pauser;
use crate::progress::Progress;
use crate::quarantine::Quarantine;
use crate::{relay, rescuer, sweeper};

/// The retry policy of each endpoint, by its name; replaced as a whole on a reload.
pub type Policies = watch::Receiver<Arc<HashMap<String, RetryPolicy>>>;

/// Most ids that a worker fetches at once.
const BATCH: usize = 64;
/// How long a start waits to hear whether its queue is paused.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// How long the roles and the last acknowledgements may take after everything else has ended. Longer than
/// the queue tries to deliver when Redis hangs: 5 s, and a call of 2 s begun within them.
const FAREWELL: Duration = Duration::from_secs(8);

/// Everything that works on the jobs of one queue in one process.
pub struct Workers {
    /// Where jobs are claimed and settled.
    pub ledger: Ledger,
    /// Where ids come from.
    pub queue: Queue,
    /// Name of the queue, as the ledger knows it.
    pub name: posthaste_jobs::Queue,
    /// Where deliveries go.
    pub endpoints: Endpoints,
    /// How often each endpoint is tried.
    pub policies: Policies,
    /// Time of day, for attempts and signatures.
    pub clock: Clock,
    /// Where jobs wait that may take this process down with them.
    pub quarantine: Quarantine,
    /// Where it is told whether they get on.
    pub progress: Progress,
    /// Numbers.
    pub config: Config,
}

impl Workers {
    /// Works until `soft`, lets what runs end within the grace period (or until `hard`), gives the rest
    /// back without spending an attempt, and returns.
    pub async fn run(self, soft: CancellationToken, hard: CancellationToken) {
        // New at each boot: a process that died must never be taken for the one that follows it.
        let worker: Arc<str> = format!("{}-{:08x}", std::process::id(), rand::random::<u32>()).into();
        let keeper = Arc::new(Keeper::default());
        let abandon = CancellationToken::new();
        let desk = Arc::new(Desk {
            ledger: self.ledger.clone(),
            endpoints: self.endpoints.clone(),
            policies: self.policies.clone(),
            clock: Arc::clone(&self.clock),
            worker: Arc::clone(&worker),
            keeper: Arc::clone(&keeper),
            quarantine: self.quarantine.clone(),
            progress: self.progress.clone(),
            abandon: abandon.clone(),
        });

        let tracker = TaskTracker::new();
        // What a paused queue holds is not to be fetched in the moment before it is told so.
        let mut pauser = Pauser::default();
        let first = pauser.mirror(&self.ledger, &self.queue, self.name);
        let _ = tokio::time::timeout(FIRST_LOOK, first).await;

        // What pushes ends with the soft stop: what it would push, others or the next start will. The keepers
        // go on until the last job has ended.
        let ended = CancellationToken::new();
        {
            let (ledger, queue, name, stop) =
                (self.ledger.clone(), self.queue.clone(), self.name, soft.clone());
            tracker.spawn(async move {
                tokio::join!(
                    relay::run(&ledger, &queue, name, &stop),
                    rescuer::run(&ledger, &queue, name, &stop),
                    sweeper::run(&ledger, &queue, name, &stop),
                    pauser.run(&ledger, &queue, name, &stop),
                )
            });
            let (ledger, keeper, stop) = (self.ledger.clone(), Arc::clone(&keeper), ended.clone());
            tracker.spawn(async move { keeper.run(&ledger, &stop).await });
            let (queue, stop) = (self.queue.clone(), ended.clone());
            tracker.spawn(async move { queue.keep(stop).await });
        }
        {
            let (grace, soft, abandon, ended) = (self.config.grace.0, soft.clone(), abandon, ended.clone());
            tracker.spawn(async move {
                tokio::select! {
                    () = ended.cancelled() => {}
                    () = hard.cancelled() => {}
                    () = async { soft.cancelled().await; tokio::time::sleep(grace).await } => {}
                }
                abandon.cancel();
            });
        }
        tracker.close();

        info!(worker = %worker, queue = %self.name, concurrency = self.config.concurrency, "working");
        self.work(desk, &worker, &soft).await;
        ended.cancel();
        if tokio::time::timeout(FAREWELL, tracker.wait()).await.is_err() {
            error!(worker = %worker, "a background role did not end in time");
        }
        info!(worker = %worker, queue = %self.name, "stopped working");
    }

    /// Runs the apalis worker until `soft`. One that ends for any other reason is followed by another.
    async fn work(&self, desk: Arc<Desk>, worker: &str, soft: &CancellationToken) {
        let handlers = TaskTracker::new();
        let mut incarnation = 0_u32;
        while !soft.is_cancelled() {
            let spawner = handlers.clone();
            let signal = soft.clone();
            // Boxed: the compiler does not see through the types below that it may move between threads.
            let running: Pin<Box<dyn Future<Output = Result<(), WorkerError>> + Send>> = Box::pin(
                WorkerBuilder::new(format!("{worker}-{incarnation}"))
                    .backend(self.queue.backend(BATCH))
                    .data(Arc::clone(&desk))
                    .concurrency(self.config.concurrency)
                    .parallelize(move |job| spawner.spawn(job))
                    .build(work)
                    .run_until(async move {
                        signal.cancelled().await;
                        Ok::<(), WorkerError>(())
                    }),
            );
            match running.await {
                Ok(()) => {}
                Err(error) => {
                    error!(
                        worker,
                        error = chain(&error),
                        "the worker ended, another takes over"
                    );
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
            incarnation += 1;
        }
        handlers.close();
        handlers.wait().await;
    }
}

/// What apalis calls for each id.
async fn work(id: JobId, desk: Data<Arc<Desk>>) -> Result<Ack, BoxDynError> {
    Ok(desk.work(id).await)
}
