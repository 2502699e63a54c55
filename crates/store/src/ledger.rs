use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use posthaste_jobs::{EventId, JobId, Queue};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::claim::ClaimRequest;
use crate::error::{LedgerError, OpenError, TimedOut, Vanished};
use crate::postgres::Postgres;
use crate::sqlite::Sqlite;
use crate::value::text;
use crate::{
    Accepted, AttemptRecord, Claim, Company, Config, Due, EventData, EventFilter, EventRow, JobFilter,
    JobRow, Lease, NewEvent, NewJob, Settled, Settlement, Standing,
};

/// How long a write of the main road may take. A provider that waits is told before it gives up.
const WRITE: Duration = Duration::from_secs(5);

/// How long a read or an operator's write may take.
const STEER: Duration = Duration::from_secs(30);

/// The ledger. Cheap to clone; all clones share its connections and its writers.
///
/// No call waits without end: a ledger that is away or hangs is [`LedgerError::Unavailable`] within
/// seconds, and each call tries anew, so that none is needed to bring it back.
#[derive(Clone, Debug)]
pub struct Ledger {
    store: Arc<Store>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

#[derive(Debug)]
enum Store {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// Asks whichever store there is.
macro_rules! ask {
    ($ledger:expr, $limit:expr, $store:ident => $call:expr) => {
        within($limit, async {
            match &*$ledger.store {
                Store::Sqlite($store) => $call.await,
                Store::Postgres($store) => $call.await,
            }
        })
        .await
    };
}

impl Ledger {
    /// Opens; no I/O but making the SQLite folder and file. A PostgreSQL that is away is no error here.
    /// Must be called within a runtime, which the writers run on.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the configuration, or why the file cannot be made.
    pub async fn open(config: &Config) -> Result<Self, OpenError> {
        let tasks = TaskTracker::new();
        let closing = CancellationToken::new();
        let scheme = config.url.split(':').next().unwrap_or_default();
        let store = match scheme {
            "sqlite" => {
                let path = config.url.strip_prefix("sqlite:").unwrap_or_default();
                Store::Sqlite(Sqlite::open(path, &tasks, closing.clone()).await?)
            }
            "postgres" | "postgresql" => Store::Postgres(Postgres::open(config, &tasks, &closing)?),
            other => {
                return Err(OpenError::UnknownScheme {
                    scheme: other.to_owned(),
                });
            }
        };
        Ok(Self {
            store: Arc::new(store),
            tasks,
            closing,
        })
    }

    /// Brings the schema up to date, under a lock. Idempotent; safe from several processes at once. Takes
    /// as long as it takes.
    ///
    /// # Errors
    ///
    /// Refused with a [`SchemaError`](crate::SchemaError) if the schema is newer than this program.
    pub async fn migrate(&self) -> Result<(), LedgerError> {
        match &*self.store {
            Store::Sqlite(store) => store.migrate().await,
            Store::Postgres(store) => store.migrate().await,
        }
    }

    /// `Ok` if the ledger answers and its schema is current.
    ///
    /// # Errors
    ///
    /// Refused with a [`SchemaError`](crate::SchemaError) if the schema is another.
    pub async fn check(&self) -> Result<(), LedgerError> {
        ask!(self, WRITE, store => store.check())
    }

    /// Waits for grouped writes under way and closes. Whatever is asked later is unavailable.
    pub async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        match &*self.store {
            Store::Sqlite(store) => store.close().await,
            Store::Postgres(store) => store.close().await,
        }
    }

    /// Accepts an event with its jobs, once per source and provider's id. Grouped with concurrent ones.
    ///
    /// # Errors
    ///
    /// If unavailable, it may have been accepted; accepting it again finds out.
    pub async fn accept(&self, event: NewEvent) -> Result<Accepted, LedgerError> {
        let event = event.storable();
        ask!(self, WRITE, store => store.accept(event))
    }

    /// Asks to run a job now; `lease` is how long the right to do so lasts unless renewed. Grouped with
    /// concurrent ones.
    ///
    /// A job found running after its lease has ended has lost its worker, unless that is who asks. It is
    /// started again twice, the second time only by who runs nothing else beside it ([`Claim::Suspect`]); the
    /// third worker lost since its last ending or replay makes it a dead letter, and the answer
    /// [`Claim::Crashed`].
    ///
    /// # Errors
    ///
    /// If unavailable, it may have been claimed; then it is in progress until the lease ends.
    pub async fn claim(
        &self,
        job: JobId,
        worker: &str,
        lease: Duration,
        company: Company,
    ) -> Result<Claim, LedgerError> {
        let request = ClaimRequest {
            job,
            worker: text(worker.to_owned()),
            lease,
            company,
        };
        let mut verdict = ask!(self, WRITE, store => store.claim(request))?;
        if let (Some(event), Claim::Started(claimed)) = (verdict.body_of, &mut verdict.claim) {
            match self.content(event).await {
                Ok(Some((_, body))) => {
                    if let Some(event) = &mut claimed.event {
                        event.body = body;
                    }
                }
                missing => {
                    // Best effort: if this fails too, the job waits until the lease ends.
                    let _ = self.give_back(&[claimed.lease]).await;
                    return Err(missing.err().unwrap_or_else(|| Vanished.into()));
                }
            }
        }
        Ok(verdict.claim)
    }

    /// Writes how a try ended, if its lease still holds. Grouped with concurrent ones.
    ///
    /// # Errors
    ///
    /// If unavailable, it may have been written; settling again then finds the lease lost.
    pub async fn settle(&self, settlement: Settlement) -> Result<Settled, LedgerError> {
        let settlement = settlement.storable();
        ask!(self, WRITE, store => store.settle(settlement))
    }

    /// Prolongs leases from now on; returns those that are lost.
    ///
    /// # Errors
    ///
    /// If unavailable, none may have been prolonged.
    pub async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<Lease>, LedgerError> {
        let held = ask!(self, WRITE, store => store.renew(leases, lease))?;
        let held: HashSet<JobId> = held.into_iter().collect();
        Ok(leases
            .iter()
            .filter(|lease| !held.contains(&lease.job))
            .copied()
            .collect())
    }

    /// Gives running jobs back untouched (a stop): queued again, nothing charged. Leases that are lost
    /// are passed over.
    ///
    /// # Errors
    ///
    /// If unavailable, the jobs wait until their leases end, and are charged a crash.
    pub async fn give_back(&self, leases: &[Lease]) -> Result<(), LedgerError> {
        ask!(self, WRITE, store => store.give_back(leases))
    }

    /// Returns jobs of a queue accepted, replayed or given back that no worker has claimed in time (3 s; at once for
    /// a replay), so that the queue may not hold them. Longest waiting first.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn unrelayed(&self, queue: Queue, limit: u32) -> Result<Vec<Due>, LedgerError> {
        ask!(self, WRITE, store => store.unrelayed(queue, limit))
    }

    /// Notes that the queue holds these, as [`unrelayed`](Self::unrelayed) returned them: they are unrelayed
    /// no longer, unless they were replayed or given back since.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn relayed(&self, relayed: &[Due]) -> Result<(), LedgerError> {
        ask!(self, WRITE, store => store.relayed(relayed))
    }

    /// Returns unfinished jobs of a queue in order of id, after `after`. A running one is due when its
    /// lease ends.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn unfinished(
        &self,
        queue: Queue,
        after: Option<JobId>,
        limit: u32,
    ) -> Result<Vec<Due>, LedgerError> {
        ask!(self, WRITE, store => store.unfinished(queue, after, limit))
    }

    /// Returns the queue's epoch for which every unfinished job is known to have been pushed.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn epoch(&self, queue: Queue) -> Result<Option<String>, LedgerError> {
        ask!(self, WRITE, store => store.epoch(queue))
    }

    /// Notes the epoch for which every unfinished job has been pushed.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn set_epoch(&self, queue: Queue, epoch: &str) -> Result<(), LedgerError> {
        ask!(self, WRITE, store => store.set_epoch(queue, text(epoch.to_owned())))
    }

    /// Asks for the turn to compare the queue with the jobs; whoever gets it is the only one to for as long as
    /// `every`, over all processes.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn take_sweep(&self, queue: Queue, every: Duration) -> Result<bool, LedgerError> {
        ask!(self, WRITE, store => store.take_sweep(queue, every))
    }

    /// Notes that nothing of a queue is to be handed out, or that it is again. Pausing what is paused changes
    /// nothing, not even since when it is. Returns whether it changed anything.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn set_paused(&self, queue: Queue, paused: bool) -> Result<bool, LedgerError> {
        ask!(self, STEER, store => store.set_paused(queue, paused))
    }

    /// Tells whether a queue is paused.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn is_paused(&self, queue: Queue) -> Result<bool, LedgerError> {
        ask!(self, WRITE, store => store.is_paused(queue))
    }

    /// Returns how a queue stands.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn standing(&self, queue: Queue) -> Result<Standing, LedgerError> {
        ask!(self, STEER, store => store.standing(queue))
    }

    /// Lists events, newest first; `before` pages on.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn events(
        &self,
        filter: &EventFilter,
        before: Option<EventId>,
        limit: u32,
    ) -> Result<Vec<EventRow>, LedgerError> {
        ask!(self, STEER, store => store.reader().events(filter, before, limit))
    }

    /// Returns one event, with its headers and body.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn event(&self, id: EventId) -> Result<Option<(EventRow, EventData)>, LedgerError> {
        let Some(row) = ask!(self, STEER, store => store.reader().event(id))? else {
            return Ok(None);
        };
        let Some((headers, body)) = self.content(id).await? else {
            return Ok(None);
        };
        let data = EventData {
            id,
            source: row.source.clone(),
            event_type: row.event_type.clone(),
            received_at: row.received_at,
            headers: crate::Headers::from_block(headers),
            body,
        };
        Ok(Some((row, data)))
    }

    async fn content(&self, id: EventId) -> Result<Option<(bytes::Bytes, bytes::Bytes)>, LedgerError> {
        ask!(self, WRITE, store => store.reader().content(id))
    }

    /// Lists jobs, newest first; `before` pages on.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn jobs(
        &self,
        filter: &JobFilter,
        before: Option<JobId>,
        limit: u32,
    ) -> Result<Vec<JobRow>, LedgerError> {
        ask!(self, STEER, store => store.reader().jobs(filter, before, limit))
    }

    /// Returns one job.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn job(&self, id: JobId) -> Result<Option<JobRow>, LedgerError> {
        let filter = JobFilter {
            ids: vec![id],
            ..JobFilter::default()
        };
        Ok(self.jobs(&filter, None, 1).await?.pop())
    }

    /// Returns the attempts at a job, first to last, over all runs.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, LedgerError> {
        ask!(self, STEER, store => store.reader().attempts(id))
    }

    /// Counts jobs.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn count(&self, filter: &JobFilter) -> Result<u64, LedgerError> {
        ask!(self, STEER, store => store.reader().count(filter))
    }

    /// Puts dead, discarded or cancelled jobs back to queued with a fresh budget of attempts and crashes,
    /// up to `limit` of them, oldest first; returns which. Others that the filter finds are left alone.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn replay(&self, filter: &JobFilter, limit: u32) -> Result<Vec<JobId>, LedgerError> {
        ask!(self, STEER, store => store.replay(filter, limit))
    }

    /// Closes dead letters, up to `limit`, oldest first; returns which.
    ///
    /// # Errors
    ///
    /// If the ledger is away.
    pub async fn discard(&self, filter: &JobFilter, limit: u32) -> Result<Vec<JobId>, LedgerError> {
        ask!(self, STEER, store => store.discard(filter, limit))
    }

    /// Adds jobs to an event that is there (replay of an event); each counts as a replay (`replays` = 1).
    ///
    /// # Errors
    ///
    /// Refused if no event has the id.
    pub async fn add_jobs(&self, event: EventId, jobs: Vec<NewJob>) -> Result<(), LedgerError> {
        let jobs = jobs.into_iter().map(NewJob::storable).collect();
        ask!(self, STEER, store => store.add_jobs(event, jobs))
    }
}

async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, LedgerError>>,
) -> Result<T, LedgerError> {
    timeout(limit, call).await.map_err(|_| TimedOut(limit))?
}
