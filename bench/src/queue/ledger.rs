//! The queue with the ledger's claim and settle around each job, as workers have it; the delivery between them is left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use bytes::Bytes;
use posthaste_jobs::{Clock, Ending, EventId, JobId, Kind, Priority};
use posthaste_queue::Ack;
use posthaste_store::{
    AttemptRecord, Claim, Company, Config, Headers, Ledger, NewEvent, NewJob, Settled, Settlement,
};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::crew::Crew;
use super::ground::{Ground, ids};
use super::latch::Latch;
use super::line::Line;
use super::options::{Engine, Measure, Options};
use super::work::Work;
use crate::figures::rounded;
use crate::postgres::Postgres;

/// How long a claim lasts.
const LEASE: Duration = Duration::from_secs(10);
/// Events that are accepted at once; each then stands in the ledger with a body of 1 KB.
const SENDERS: usize = 256;
const BODY: &[u8] = &[b'.'; 1024];
const WORKER: &str = "bench";

pub(super) async fn measure(options: &Options, engine: Engine, clock: &Clock) -> anyhow::Result<Line> {
    let ground = Ground::start(options, engine).await?;
    let postgres = match engine {
        Engine::Local => None,
        Engine::Redis => Some(Postgres::start(ground.scratch()).await?),
    };
    let sqlite = || format!("sqlite:{}", ground.scratch().path("ledger.db").display());
    let config = Config {
        url: postgres.as_ref().map_or_else(sqlite, Postgres::url),
        ..Config::default()
    };
    let ledger = Ledger::open(&config).await?;
    ledger.migrate().await?;

    let jobs = Arc::new(ids(options.jobs as usize, clock));
    accept(&ledger, &jobs, clock).await?;
    let pushed = ground.push(&jobs).await?;

    let latch = Arc::new(Latch::new(jobs.len()));
    let desk = Arc::new(Desk {
        ledger: ledger.clone(),
        clock: Arc::clone(clock),
    });
    let start = Instant::now();
    let crew = Crew::start(&ground.queue, options, Work::Settling(Arc::clone(&latch), desk));
    latch.opened().await?;
    crew.until_empty().await?;
    let consumed = start.elapsed();
    crew.stop().await;
    latch.ensure_none_twice()?;
    ledger.close().await;

    let count = jobs.len() as f64;
    let mut line = Line::new(options, engine, Measure::Ledger.name(), jobs.len());
    line.push_per_s = Some(rounded(count / pushed.as_secs_f64(), 0));
    line.consume_per_s = Some(rounded(count / consumed.as_secs_f64(), 0));
    Ok(line)
}

/// Puts an event with one job each into the ledger, in order.
async fn accept(ledger: &Ledger, jobs: &Arc<Vec<JobId>>, clock: &Clock) -> anyhow::Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut senders = JoinSet::new();
    for _ in 0..SENDERS {
        let (ledger, jobs, clock, next) = (
            ledger.clone(),
            Arc::clone(jobs),
            Arc::clone(clock),
            Arc::clone(&next),
        );
        senders.spawn(async move {
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                ledger.accept(event(*job, &clock)).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(sender) = senders.join_next().await {
        sender??;
    }
    Ok(())
}

fn event(job: JobId, clock: &Clock) -> NewEvent {
    NewEvent {
        id: EventId::new(clock(), rand::random()),
        source: "bench".to_owned(),
        provider_id: job.to_string(),
        event_type: None,
        headers: Headers::default(),
        body: Bytes::from_static(BODY),
        jobs: vec![NewJob {
            id: job,
            kind: Kind::WebhookDelivery,
            payload: r#"{"endpoint":"receiver"}"#.to_owned(),
            endpoint: Some("receiver".to_owned()),
            wait: Duration::ZERO,
            priority: Priority::Normal,
        }],
    }
}

/// Where a job is claimed and settled at once.
pub(crate) struct Desk {
    ledger: Ledger,
    clock: Clock,
}

impl Desk {
    /// Works on one job. What does not go as it should brings the id back, and then it is counted as lost.
    pub(crate) async fn work(&self, job: JobId) -> Ack {
        match self.succeed(job).await {
            Ok(()) => Ack::Done,
            Err(_) => Ack::Again(LEASE),
        }
    }

    async fn succeed(&self, job: JobId) -> anyhow::Result<()> {
        let claim = self.ledger.claim(job, WORKER, LEASE, Company::Others).await?;
        let Claim::Started(claimed) = claim else {
            anyhow::bail!("not ours: {claim:?}");
        };
        let attempt = AttemptRecord {
            number: claimed.attempt.get(),
            started_at: (self.clock)(),
            duration_ms: 0,
            outcome: "succeeded".to_owned(),
            error_class: None,
            error: None,
            http_status: Some(204),
            response: None,
            worker: WORKER.to_owned(),
        };
        let settlement = Settlement {
            lease: claimed.lease,
            ending: Ending::Succeeded,
            attempt: Some(attempt),
            error: None,
        };
        ensure!(
            self.ledger.settle(settlement).await? == Settled::Written,
            "the lease was lost"
        );
        Ok(())
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}
