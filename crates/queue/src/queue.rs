use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use posthaste_jobs::JobId;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::config::Address;
use crate::engine::{Engine, Grant, STEP, Verdict};
use crate::held::Held;
use crate::local::Local;
use crate::remote::Remote;
use crate::{Ack, Backend, Config, Depth, Entry, OpenError, Probe, QueueError, Survey, Timing};

/// One named queue. Cheap to clone.
#[derive(Clone)]
pub struct Queue {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) engine: Engine,
    pub(crate) timing: Timing,
    pub(crate) held: Held,
    /// Whether this process takes nothing out.
    on_hold: AtomicBool,
    /// Told when there may be work.
    pub(crate) wake: Arc<Notify>,
    /// Told when something is due sooner than the keeper knows.
    pub(crate) sooner: Arc<Notify>,
    /// Told when endings wait to be delivered.
    pub(crate) undelivered: Notify,
    delivering: tokio::sync::Mutex<()>,
    holders: AtomicU64,
}

/// The holder of what is fetched by hand.
const NO_BACKEND: u64 = 0;

impl Queue {
    /// Opens the queue. It connects when it is first asked for something, so a Redis that is away is no error here.
    /// `local:` makes an empty queue with an epoch of its own.
    ///
    /// # Errors
    ///
    /// If the URL is none that an engine serves, or names a file of authorities that cannot be used.
    pub async fn open(config: &Config, name: posthaste_jobs::Queue) -> Result<Self, OpenError> {
        Self::open_as(config, name.as_str(), Timing::default())
    }

    /// Opens a queue under any name and with another timing: for tests and benchmarks, which share a server.
    ///
    /// # Errors
    ///
    /// If the URL is none that an engine serves, or names a file of authorities that cannot be used.
    pub fn open_as(config: &Config, name: &str, timing: Timing) -> Result<Self, OpenError> {
        let (wake, sooner) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let engine = match config.address()? {
            Address::Local => Engine::Local(Box::new(Local::new(
                draw_epoch(rand::random()),
                timing.lease,
                Arc::clone(&wake),
                Arc::clone(&sooner),
            ))),
            Address::Redis(servers) => Engine::Remote(Box::new(Remote::new(
                servers,
                name,
                timing.lease,
                Arc::clone(&wake),
            ))),
        };
        let inner = Inner {
            name: name.to_owned(),
            engine,
            timing,
            held: Held::default(),
            on_hold: AtomicBool::new(false),
            wake,
            sooner,
            undelivered: Notify::new(),
            delivering: tokio::sync::Mutex::default(),
            holders: AtomicU64::new(NO_BACKEND + 1),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Adds ids, each due after its wait. Idempotent: an id that the queue holds already (ready, scheduled or leased)
    /// stays as it is.
    ///
    /// Returns those that are leased: whoever has one may be about to be done with it, and then the queue forgets it.
    ///
    /// # Errors
    ///
    /// If Redis did not take all of them. Pushing all of them again is safe.
    pub async fn push(&self, entries: &[Entry]) -> Result<Vec<JobId>, QueueError> {
        self.inner.engine.push(entries).await
    }

    /// Names this memory of the queue: another epoch means that it may have forgotten some of what it held. It is another
    /// when the memory began anew, and when another run of a server has it: after a restart, and after a failover.
    ///
    /// # Errors
    ///
    /// If Redis did not answer.
    pub async fn epoch(&self) -> Result<String, QueueError> {
        self.inner.engine.epoch().await
    }

    /// Counts what the queue holds.
    ///
    /// # Errors
    ///
    /// If Redis did not answer.
    pub async fn depth(&self) -> Result<Depth, QueueError> {
        Ok(self.survey().await?.into())
    }

    /// Tells what the queue holds, and whether anybody takes it.
    ///
    /// # Errors
    ///
    /// If Redis did not answer.
    pub async fn survey(&self) -> Result<Survey, QueueError> {
        self.inner.engine.survey().await
    }

    /// Has nothing handed out to any process until this is undone. What has been fetched goes on, and pushes are taken.
    ///
    /// A Redis that loses its memory loses this too; so whoever pauses keeps that in mind, with [`Self::hold`].
    ///
    /// # Errors
    ///
    /// If Redis did not answer.
    pub async fn set_paused(&self, paused: bool) -> Result<(), QueueError> {
        self.inner.engine.set_paused(paused).await
    }

    /// Has this process take nothing out of the queue, or has it go on. Other processes are none the wiser, and no Redis
    /// can forget it.
    pub fn hold(&self, hold: bool) {
        let held = self.inner.on_hold.swap(hold, Ordering::AcqRel);
        if held && !hold {
            self.inner.wake.notify_waiters();
        }
    }

    /// Finds out whether the queue can do its work, by writing a trifle: a Redis that hangs, is full or has become a replica
    /// may still answer. While it is known to be away this fails at once.
    ///
    /// # Errors
    ///
    /// If Redis did not take the write within 2 s.
    pub async fn probe(&self) -> Result<Probe, QueueError> {
        self.inner.engine.probe().await
    }

    /// Promotes due ids, takes back leases that ran out, renews those of this process, wakes idle workers, and delivers
    /// acknowledgements. Runs until `stop` is cancelled, at most a few seconds longer to deliver the last; stop it after
    /// the workers.
    pub async fn keep(&self, stop: CancellationToken) {
        crate::keeper::keep(&self.inner, stop).await;
    }

    /// Makes a backend for apalis' `WorkerBuilder`: it yields `Task<JobId>`, and its handler returns
    /// `Result<Ack, BoxDynError>`. It takes up to `batch` ids at a time, at most 500.
    ///
    /// A handler that fails or panics instead of answering gets its id again after [`Timing::failed`]; neither ends the
    /// worker. An idle worker is woken, and what it acknowledges delivered, by [`Self::keep`], which has to run beside it.
    #[must_use]
    pub fn backend(&self, batch: usize) -> Backend {
        let holder = self.inner.holders.fetch_add(1, Ordering::Relaxed);
        Backend::new(Arc::clone(&self.inner), holder, batch.clamp(1, STEP))
    }

    /// Takes the first ids in line by hand, without a worker; at most 500. Each is to be given to
    /// [`Self::acknowledge`].
    ///
    /// # Errors
    ///
    /// If Redis did not answer.
    pub async fn fetch(&self, at_most: usize) -> Result<Vec<JobId>, QueueError> {
        let grant = self.inner.fetch(at_most.min(STEP)).await?;
        self.inner.held.take(&grant, NO_BACKEND);
        Ok(grant.jobs)
    }

    /// Ends what [`Self::fetch`] began.
    ///
    /// # Errors
    ///
    /// If Redis did not answer; [`Self::keep`] then delivers them when it does.
    pub async fn acknowledge(&self, acks: &[(JobId, Ack)]) -> Result<(), QueueError> {
        for (job, ack) in acks {
            let grant = self.inner.held.grant_of(*job);
            self.inner.held.end(*job, grant, (*ack).into());
        }
        self.inner.deliver().await
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("name", &self.inner.name)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// Leases the first ids in line, unless this process is on hold.
    pub(crate) async fn fetch(&self, at_most: usize) -> Result<Grant, QueueError> {
        if self.on_hold.load(Ordering::Acquire) {
            return Ok(Grant::default());
        }
        self.engine.fetch(at_most).await
    }

    /// Delivers the endings that wait, oldest first. What fails to arrive stays, for the keeper and the next call.
    pub(crate) async fn deliver(&self) -> Result<(), QueueError> {
        let outcome = self.try_to_deliver().await;
        if outcome.is_err() {
            self.undelivered.notify_one();
        }
        outcome
    }

    async fn try_to_deliver(&self) -> Result<(), QueueError> {
        if self.held.waiting() == 0 {
            return Ok(());
        }
        let _one_at_a_time = self.delivering.lock().await;
        loop {
            let endings = self.held.undelivered(STEP);
            if endings.is_empty() {
                return Ok(());
            }
            self.engine.acknowledge(&endings).await?;
            self.held.delivered(endings.len());
        }
    }

    /// Delivers the endings that wait, trying for at most `longest`.
    pub(crate) async fn deliver_within(&self, longest: Duration) {
        const BETWEEN: Duration = Duration::from_millis(100);
        let give_up = Instant::now() + longest;
        while self.deliver().await.is_err() && Instant::now() + BETWEEN < give_up {
            sleep(BETWEEN).await;
        }
        let left = self.held.waiting();
        if left > 0 {
            warn!(
                queue.name = self.name,
                queue.undelivered = left,
                "acknowledgements have not arrived yet"
            );
        }
    }
}

impl From<Ack> for Verdict {
    fn from(ack: Ack) -> Self {
        match ack {
            Ack::Done => Self::Done,
            Ack::Again(wait) => Self::Again(wait),
            Ack::Back => Self::Back,
        }
    }
}

/// Makes an epoch of `chance`, which is drawn by the caller.
pub(crate) fn draw_epoch(chance: u128) -> String {
    format!("{chance:032x}")
}
