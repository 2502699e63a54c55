//! Queues to test, workers to run on them, and servers to mistreat.

use std::collections::HashMap;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use apalis::prelude::*;
use futures::FutureExt;
use futures::future::BoxFuture;
use posthaste_jobs::{JobId, Lane, Timestamp};
use posthaste_queue::{Ack, Config, Entry, Queue, Timing};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes on a busy machine; nothing waits this long but a test that fails.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// So that no test passes because a worker happened to look.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

/// A timing with short leases, under which an idle worker works only if it is woken.
pub(crate) fn quick() -> Timing {
    Timing {
        lease: Duration::from_millis(900),
        renew: Duration::from_millis(200),
        recover: Duration::from_millis(50),
        look: NEVER,
        failed: Duration::from_millis(300),
        ..Timing::default()
    }
}

/// A process that fetched and was heard of no more.
pub(crate) fn without_renewal() -> Timing {
    Timing {
        renew: NEVER,
        ..quick()
    }
}

/// Where a test's queue is.
pub(crate) struct Place {
    config: Config,
    name: String,
    _server: Option<Arc<Server>>,
}

impl Place {
    pub(crate) fn local() -> Self {
        Self {
            config: Config::default(),
            name: "test".to_owned(),
            _server: None,
        }
    }

    /// A queue of its own on the server that all tests share.
    pub(crate) fn redis() -> Self {
        let url = std::env::var("POSTHASTE_TEST_REDIS").expect(
            "POSTHASTE_TEST_REDIS must be the redis:// URL of a private server; scripts/test sets it",
        );
        Self::at(url, None)
    }

    /// A queue on a server that the test may mistreat.
    pub(crate) fn on(server: &Arc<Server>) -> Self {
        Self::at(server.url(), Some(Arc::clone(server)))
    }

    fn at(url: String, server: Option<Arc<Server>>) -> Self {
        Self {
            config: Config { url },
            name: format!("test-{:x}", rand::random::<u64>()),
            _server: server,
        }
    }

    pub(crate) fn open(&self, timing: Timing) -> Queue {
        Queue::open_as(&self.config, &self.name, timing).unwrap()
    }

    /// A connection beside the queue's own, and the prefix of its keys.
    pub(crate) async fn beside(&self) -> (redis::aio::MultiplexedConnection, String) {
        let client = redis::Client::open(self.config.url.as_str()).unwrap();
        let connection = client.get_multiplexed_async_connection().await.unwrap();
        (connection, format!("{{{}}}", self.name))
    }
}

impl Place {
    /// Wakes the workers, and holds up what they then fetch, for half a second; `jobs` become ready in the same breath.
    pub(crate) async fn hold_up_a_fetch(&self, jobs: &[JobId]) {
        let (mut beside, prefix) = self.beside().await;
        let mut pipe = redis::pipe();
        for job in jobs {
            pipe.zadd(format!("{prefix}:active"), job.to_string(), 1);
        }
        pipe.publish(format!("{prefix}:wake"), "");
        pipe.cmd("CLIENT").arg("PAUSE").arg(500).arg("WRITE");
        pipe.exec_async(&mut beside).await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
}

/// A `redis-server` of one test, gone at its end.
pub(crate) struct Server {
    port: u16,
    folder: tempfile::TempDir,
    process: Mutex<Option<Child>>,
}

impl Server {
    pub(crate) async fn start() -> Arc<Self> {
        let server = Self {
            port: free_port(),
            folder: tempfile::tempdir().unwrap(),
            process: Mutex::default(),
        };
        server.launch().await;
        Arc::new(server)
    }

    /// Starts it, empty, where it was before.
    pub(crate) async fn launch(&self) {
        let child = Command::new("redis-server")
            .args([
                "--port",
                &self.port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ])
            .arg("--dir")
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server must be installed");
        *self.process.lock().unwrap() = Some(child);
        until("the server answers", || async {
            self.ask("PING", &[]).await.is_ok()
        })
        .await;
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.process.lock().unwrap().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Makes it a replica, which refuses writes, of a server that is not there.
    pub(crate) async fn demote(&self) {
        self.ask("REPLICAOF", &["127.0.0.1", &free_port().to_string()])
            .await
            .unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn ask(&self, command: &str, args: &[&str]) -> redis::RedisResult<redis::Value> {
        let client = redis::Client::open(self.url())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        redis::cmd(command).arg(args).query_async(&mut connection).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Makes ids that no other call makes.
pub(crate) fn ids(count: usize) -> Vec<JobId> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let first = NEXT.fetch_add(count as u64, Ordering::Relaxed);
    (first..first + count as u64)
        .map(|number| JobId::new(Timestamp::from_millis(1_796_095_930_123), u128::from(number)))
        .collect()
}

pub(crate) fn due_in(jobs: &[JobId], wait: Duration) -> Vec<Entry> {
    let entry = |job: &JobId| Entry {
        wait,
        ..Entry::due(*job, Lane::Normal)
    };
    jobs.iter().map(entry).collect()
}

pub(crate) fn due(jobs: &[JobId]) -> Vec<Entry> {
    due_in(jobs, Duration::ZERO)
}

/// Waits until `holds`, and fails the test if that takes too long.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let give_up = Instant::now() + LONG;
    while !holds().await {
        assert!(Instant::now() < give_up, "waited in vain until {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the queue holds nothing at all.
pub(crate) async fn until_empty(queue: &Queue) {
    until("the queue is empty", || async {
        queue.depth().await.is_ok_and(|depth| depth == Default::default())
    })
    .await;
}

/// Fetches one by one until `job` comes.
pub(crate) async fn until_fetched(queue: &Queue, job: JobId) -> Instant {
    until("the id comes", || async {
        queue.fetch(1).await.unwrap() == [job]
    })
    .await;
    Instant::now()
}

/// How often each job was handled.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<HashMap<JobId, usize>>>);

impl Seen {
    pub(crate) fn note(&self, job: JobId) -> usize {
        let mut seen = self.0.lock().unwrap();
        let times = seen.entry(job).or_default();
        *times += 1;
        *times
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) fn times(&self, job: JobId) -> usize {
        self.0.lock().unwrap().get(&job).copied().unwrap_or_default()
    }

    pub(crate) async fn all(&self, jobs: &[JobId]) {
        until("all jobs were handled", || async { self.count() >= jobs.len() }).await;
    }

    pub(crate) fn assert_each_once(&self, jobs: &[JobId]) {
        let wrong: Vec<_> = jobs.iter().filter(|job| self.times(**job) != 1).collect();
        assert!(
            wrong.is_empty(),
            "{} jobs were not handled exactly once",
            wrong.len()
        );
    }
}

/// Counts each job and is done with it.
pub(crate) fn noting(
    seen: &Seen,
) -> impl Fn(JobId) -> BoxFuture<'static, Result<Ack, BoxDynError>> + Send + Sync + 'static {
    let seen = seen.clone();
    move |job| {
        seen.note(job);
        async { Ok(Ack::Done) }.boxed()
    }
}

/// Holds up handlers until it is opened.
#[derive(Clone)]
pub(crate) struct Gate(Arc<tokio::sync::watch::Sender<bool>>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(tokio::sync::watch::Sender::new(false)))
    }
}

impl Gate {
    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }

    pub(crate) async fn pass(&self) {
        self.0.subscribe().wait_for(|open| *open).await.unwrap();
    }
}

type Handling = BoxFuture<'static, Result<Ack, BoxDynError>>;

/// The worker as its handlers see it.
#[derive(Clone, Default)]
struct Shown(Arc<OnceLock<WorkerContext>>);

#[derive(Clone)]
struct Handler(Arc<dyn Fn(JobId) -> Handling + Send + Sync>);

async fn handle(
    job: JobId,
    handler: Data<Handler>,
    context: WorkerContext,
    shown: Data<Shown>,
) -> Result<Ack, BoxDynError> {
    shown.0.0.get_or_init(|| context);
    (handler.0.0)(job).await
}

/// A keeper, or a worker with its keeper.
pub(crate) struct Running {
    stop_worker: CancellationToken,
    stop_keeper: CancellationToken,
    shown: Shown,
    worker: JoinSet<()>,
    keeper: JoinSet<()>,
}

impl Running {
    pub(crate) fn keeper(queue: &Queue) -> Self {
        let (queue, stop) = (queue.clone(), CancellationToken::new());
        let stop_keeper = stop.clone();
        let mut keeper = JoinSet::new();
        keeper.spawn(async move { queue.keep(stop).await });
        Self {
            stop_worker: CancellationToken::new(),
            stop_keeper,
            shown: Shown::default(),
            worker: JoinSet::new(),
            keeper,
        }
    }

    /// Runs a real apalis worker.
    pub(crate) fn worker<F>(
        queue: &Queue,
        batch: usize,
        at_once: usize,
        handler: impl Fn(JobId) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Ack, BoxDynError>> + Send + 'static,
    {
        let mut running = Self::keeper(queue);
        let handler = Handler(Arc::new(move |job| handler(job).boxed()));
        let worker = WorkerBuilder::new("test")
            .backend(queue.backend(batch))
            .concurrency(at_once)
            .data(handler)
            .data(running.shown.clone())
            .build(handle);
        let stop = running.stop_worker.clone();
        running.worker.spawn(async move {
            let stopped = async move {
                stop.cancelled().await;
                Ok::<(), std::io::Error>(())
            };
            worker.run_until(stopped).await.unwrap();
        });
        running
    }

    pub(crate) fn is_working(&mut self) -> bool {
        self.worker.try_join_next().is_none() && !self.worker.is_empty()
    }

    /// Tells the worker to stop, and waits until it knows, not until it has.
    pub(crate) async fn stop_worker(&self) {
        self.stop_worker.cancel();
        let worker = self.shown.0.get().expect("a handler must have run");
        until("the worker knows", || async { worker.is_shutting_down() }).await;
    }

    /// Stops the worker, waits for what runs, then stops the keeper.
    pub(crate) async fn stop(mut self) {
        self.stop_worker.cancel();
        timeout(LONG, self.worker.join_next())
            .await
            .expect("the worker must stop")
            .map(Result::unwrap);
        self.stop_keeper.cancel();
        timeout(LONG, self.keeper.join_next())
            .await
            .expect("the keeper must stop")
            .map(Result::unwrap);
    }

    /// Drops the worker as it is; the keeper goes on.
    pub(crate) async fn cut_off_worker(&mut self) {
        self.worker.shutdown().await;
    }
}
