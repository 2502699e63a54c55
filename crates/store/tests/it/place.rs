//! Where a test keeps its ledger, and words to speak of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use posthaste_jobs::{Ending, EventId, JobId, Kind, Priority, Timestamp};
use posthaste_store::{
    Accepted, AttemptRecord, Claim, Claimed, Company, Config, Headers, Lease, Ledger, NewEvent, NewJob,
    Settled, Settlement,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use tempfile::TempDir;

pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// A database of a test's own.
pub(crate) enum Place {
    Sqlite(TempDir),
    Postgres { server: String, name: String },
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    pub(crate) async fn postgres() -> Self {
        let server = std::env::var("POSTHASTE_TEST_POSTGRES").expect(
            "POSTHASTE_TEST_POSTGRES must be the URL of a superuser of a private server: run scripts/test",
        );
        let name = format!("store_{}_{}", std::process::id(), number());
        let mut connection = PgConnection::connect(&server).await.unwrap();
        sqlx::query(AssertSqlSafe(format!("create database {name}")))
            .execute(&mut connection)
            .await
            .unwrap();
        Self::Postgres { server, name }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite(folder) => format!("sqlite:{}", folder.path().join("data/ledger.db").display()),
            Self::Postgres { server, name } => {
                let (before, _) = server.rsplit_once('/').unwrap();
                format!("{before}/{name}")
            }
        }
    }

    /// Opens the ledger without looking at its schema.
    pub(crate) async fn open_only(&self) -> Ledger {
        let config = Config {
            url: self.url(),
            ..Config::default()
        };
        Ledger::open(&config).await.unwrap()
    }

    pub(crate) async fn open(&self) -> Ledger {
        let ledger = self.open_only().await;
        ledger.migrate().await.unwrap();
        ledger
    }

    /// Runs a statement past the ledger, as time and other programs do.
    pub(crate) async fn execute(&self, sql: &str) {
        match self {
            Self::Sqlite(_) => {
                let mut connection = SqliteConnection::connect(&self.url()).await.unwrap();
                sqlx::query(AssertSqlSafe(sql))
                    .execute(&mut connection)
                    .await
                    .unwrap();
                connection.close().await.unwrap();
            }
            Self::Postgres { .. } => {
                let mut connection = PgConnection::connect(&self.url()).await.unwrap();
                sqlx::query(AssertSqlSafe(sql))
                    .execute(&mut connection)
                    .await
                    .unwrap();
            }
        }
    }

    /// Lets the leases of all running jobs end.
    pub(crate) async fn end_leases(&self) {
        self.execute("update jobs set lease_until = 1 where state = 'running'")
            .await;
    }

    /// Lets the time of all waiting jobs come.
    pub(crate) async fn make_due(&self) {
        self.execute("update jobs set run_at = 1").await;
    }

    pub(crate) async fn remove(self) {
        if let Self::Postgres { server, name } = self {
            let mut connection = PgConnection::connect(&server).await.unwrap();
            let sql = format!("drop database {name} with (force)");
            sqlx::query(AssertSqlSafe(sql))
                .execute(&mut connection)
                .await
                .unwrap();
        }
    }
}

/// Returns a number that no other has in this process.
pub(crate) fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn event_id() -> EventId {
    let number = number();
    EventId::new(Timestamp::from_millis(number.cast_signed()), number.into())
}

pub(crate) fn job_id() -> JobId {
    let number = number();
    JobId::new(Timestamp::from_millis(number.cast_signed()), number.into())
}

pub(crate) fn new_job() -> NewJob {
    NewJob {
        id: job_id(),
        kind: Kind::WebhookDelivery,
        payload: r#"{"endpoint":"orders"}"#.to_owned(),
        endpoint: Some("orders".to_owned()),
        wait: Duration::ZERO,
        priority: Priority::Normal,
    }
}

/// An event of its own identity, with one job.
pub(crate) fn new_event() -> NewEvent {
    let id = event_id();
    NewEvent {
        id,
        source: "stripe".to_owned(),
        provider_id: format!("evt_{id}"),
        event_type: Some("order.paid".to_owned()),
        headers: Headers::new(vec![(
            "Content-Type".to_owned(),
            Bytes::from_static(b"application/json"),
        )]),
        body: Bytes::from_static(b"{}"),
        jobs: vec![new_job()],
    }
}

/// Accepts an event with one job, and returns the job.
pub(crate) async fn accept_one(ledger: &Ledger) -> JobId {
    let event = new_event();
    let job = event.jobs[0].id;
    assert_eq!(ledger.accept(event).await.unwrap(), Accepted::New);
    job
}

pub(crate) async fn claim(ledger: &Ledger, job: JobId) -> Claim {
    claim_as(ledger, job, "worker-1").await
}

pub(crate) async fn claim_as(ledger: &Ledger, job: JobId, worker: &str) -> Claim {
    ledger.claim(job, worker, LEASE, Company::Others).await.unwrap()
}

pub(crate) async fn claim_alone(ledger: &Ledger, job: JobId, worker: &str) -> Claim {
    ledger.claim(job, worker, LEASE, Company::Alone).await.unwrap()
}

/// Claims a job and loses the worker, `times` times, each time another.
pub(crate) async fn lose_workers(place: &Place, ledger: &Ledger, job: JobId, times: u32) {
    for number in 1..=times {
        let claim = claim_alone(ledger, job, &format!("lost-{number}")).await;
        assert!(matches!(claim, Claim::Started(_)), "{claim:?}");
        place.end_leases().await;
    }
}

/// Claims a job that is to be had.
pub(crate) async fn start(ledger: &Ledger, job: JobId) -> Claimed {
    match claim(ledger, job).await {
        Claim::Started(claimed) => *claimed,
        other => panic!("expected to start the job, got {other:?}"),
    }
}

pub(crate) fn failure(class: &str, error: &str) -> AttemptRecord {
    AttemptRecord {
        number: 0,
        started_at: Timestamp::from_millis(1_796_095_930_123),
        duration_ms: 42,
        outcome: "failed".to_owned(),
        error_class: Some(class.to_owned()),
        error: Some(error.to_owned()),
        http_status: Some(503),
        response: Some("busy".to_owned()),
        worker: "worker-1".to_owned(),
    }
}

pub(crate) fn success() -> AttemptRecord {
    AttemptRecord {
        outcome: "succeeded".to_owned(),
        error_class: None,
        error: None,
        http_status: Some(200),
        ..failure("", "")
    }
}

pub(crate) async fn settle(ledger: &Ledger, lease: Lease, ending: Ending) -> Settled {
    let attempt = match ending {
        Ending::Succeeded => Some(success()),
        Ending::Parked { .. } => None,
        Ending::Retrying { .. } | Ending::Dead(_) => Some(failure("status", "answered 503")),
    };
    let error = attempt.as_ref().and_then(|attempt| attempt.error.clone());
    ledger
        .settle(Settlement {
            lease,
            ending,
            attempt,
            error,
        })
        .await
        .unwrap()
}

/// Runs a job once, to this ending.
pub(crate) async fn run(ledger: &Ledger, job: JobId, ending: Ending) {
    let claimed = start(ledger, job).await;
    assert_eq!(settle(ledger, claimed.lease, ending).await, Settled::Written);
}
