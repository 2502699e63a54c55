//! The ledger in a file. One connection writes, a few read.
//!
//! SQLite lets one transaction write at a time, so all that concurrent callers write, of whatever kind,
//! shares one transaction and one fsync. Other processes (the command line) may write to the same file;
//! a write waits for theirs.

mod accept;
mod claim;
mod operate;
mod queues;
mod recover;
mod settle;

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use posthaste_jobs::{EventId, JobId};
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, SqliteConnection, SqlitePool};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::batch::{Commit, Writer};
use crate::claim::{ClaimRequest, Verdict};
use crate::error::{LedgerError, OpenError, leaves_connection};
use crate::read::Reader;
use crate::schema::{behind, compare, migrate_error, migrator};
use crate::{Accepted, Due, JobFilter, Lease, NewEvent, NewJob, Settled, Settlement};

static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator([
        (
            1,
            "ledger",
            include_str!("../../../../migrations/sqlite/0001_ledger.sql"),
        ),
        (
            2,
            "queues",
            include_str!("../../../../migrations/sqlite/0002_queues.sql"),
        ),
    ])
});

/// How long a transaction waits for one of another process.
const BUSY: Duration = Duration::from_secs(3);

/// How long a reader waits for a connection.
const ACQUIRE: Duration = Duration::from_secs(3);

/// Connections that read.
const READERS: u32 = 4;

/// The database's clock, in milliseconds; it stands still within a statement.
macro_rules! now {
    () => {
        "cast(round(unixepoch('subsec') * 1000) as integer)"
    };
}
use now;

/// The ledger in a file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    options: SqliteConnectOptions,
    readers: SqlitePool,
    writer: Writer<Committer>,
}

impl Sqlite {
    /// Makes the folder and the file, if need be.
    pub(crate) async fn open(
        path: &str,
        tasks: &TaskTracker,
        closing: CancellationToken,
    ) -> Result<Self, OpenError> {
        let path = parse_path(path)?;
        make_file(&path).await.map_err(|source| OpenError::File {
            path: path.clone(),
            source,
        })?;
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .journal_mode(SqliteJournalMode::Wal)
            // Once answered, a write survives a loss of power, not only of the process.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY);
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(ACQUIRE)
            .test_before_acquire(false)
            .connect_lazy_with(options.clone().pragma("query_only", "on"));
        let committer = Committer {
            options: options
                .clone()
                // 16 MiB of pages in memory: those of the indexes are met in no order.
                .pragma("cache_size", "-16000")
                // 16 MiB of log before it is copied into the file: a page that many transactions change
                // is copied once.
                .pragma("wal_autocheckpoint", "4000"),
            connection: None,
        };
        Ok(Self {
            options,
            readers,
            writer: Writer::start(committer, tasks, closing),
        })
    }

    /// Runs all migrations in one transaction: a second process waits for it, then finds nothing to do.
    pub(crate) async fn migrate(&self) -> Result<(), LedgerError> {
        let mut connection = SqliteConnection::connect_with(&self.options).await?;
        let mut transaction = connection.begin_with("begin immediate").await?;
        // `run` takes an `Acquire`, whose lifetimes keep a future that holds it from being `Send`.
        MIGRATIONS
            .run_direct(None, &mut *transaction, false)
            .await
            .map_err(migrate_error)?;
        transaction.commit().await?;
        connection.close().await?;
        Ok(())
    }

    pub(crate) fn reader(&self) -> Reader<'_, sqlx::Sqlite> {
        Reader(&self.readers)
    }

    pub(crate) async fn check(&self) -> Result<(), LedgerError> {
        let applied = sqlx::query_as("select version, checksum from _sqlx_migrations where success")
            .fetch_all(&self.readers)
            .await;
        match applied {
            Ok(applied) => Ok(compare(&MIGRATIONS, applied)?),
            Err(sqlx::Error::Database(error)) if error.message().starts_with("no such table") => {
                Err(behind(&MIGRATIONS).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
    }

    pub(crate) async fn accept(&self, event: NewEvent) -> Result<Accepted, LedgerError> {
        match self.writer.write(Operation::Accept(event)).await? {
            Answer::Accepted(accepted) => Ok(accepted),
            other => other.mistaken(),
        }
    }

    pub(crate) async fn claim(&self, request: ClaimRequest) -> Result<Verdict, LedgerError> {
        match self.writer.write(Operation::Claim(request)).await? {
            Answer::Claim(verdict) => Ok(verdict),
            other => other.mistaken(),
        }
    }

    pub(crate) async fn settle(&self, settlement: Settlement) -> Result<Settled, LedgerError> {
        match self.writer.write(Operation::Settle(settlement)).await? {
            Answer::Settled(settled) => Ok(settled),
            other => other.mistaken(),
        }
    }

    async fn change(&self, change: Change) -> Result<Vec<JobId>, LedgerError> {
        match self.writer.write(Operation::Change(change)).await? {
            Answer::Changed(jobs) => Ok(jobs),
            other => other.mistaken(),
        }
    }

    /// Returns the leases that are still held.
    pub(crate) async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, LedgerError> {
        self.change(Change::Renew {
            leases: leases.to_vec(),
            lease,
        })
        .await
    }

    pub(crate) async fn give_back(&self, leases: &[Lease]) -> Result<(), LedgerError> {
        self.change(Change::GiveBack(leases.to_vec())).await.map(drop)
    }

    pub(crate) async fn relayed(&self, relayed: &[Due]) -> Result<(), LedgerError> {
        self.change(Change::Relayed(relayed.to_vec())).await.map(drop)
    }

    pub(crate) async fn replay(&self, filter: &JobFilter, limit: u32) -> Result<Vec<JobId>, LedgerError> {
        self.change(Change::Replay {
            filter: filter.clone(),
            limit,
        })
        .await
    }

    pub(crate) async fn discard(&self, filter: &JobFilter, limit: u32) -> Result<Vec<JobId>, LedgerError> {
        self.change(Change::Discard {
            filter: filter.clone(),
            limit,
        })
        .await
    }

    pub(crate) async fn add_jobs(&self, event: EventId, jobs: Vec<NewJob>) -> Result<(), LedgerError> {
        self.change(Change::AddJobs { event, jobs }).await.map(drop)
    }
}

/// What shares a transaction.
enum Operation {
    Accept(NewEvent),
    Claim(ClaimRequest),
    Settle(Settlement),
    Change(Change),
    Queue(queues::Change),
}

/// Writes that are rare: each is one statement, and answers with the jobs that it has changed.
enum Change {
    Renew { leases: Vec<Lease>, lease: Duration },
    GiveBack(Vec<Lease>),
    Relayed(Vec<Due>),
    Replay { filter: JobFilter, limit: u32 },
    Discard { filter: JobFilter, limit: u32 },
    AddJobs { event: EventId, jobs: Vec<NewJob> },
}

enum Answer {
    Accepted(Accepted),
    Claim(Verdict),
    Settled(Settled),
    Changed(Vec<JobId>),
    Queue(bool),
}

impl Answer {
    fn mistaken<T>(self) -> T {
        unreachable!("`write` answers each operation with its own kind of answer")
    }
}

struct Committer {
    options: SqliteConnectOptions,
    connection: Option<SqliteConnection>,
}

impl Commit for Committer {
    type Operation = Operation;
    type Answer = Answer;

    async fn commit(
        &mut self,
        operations: &[Operation],
    ) -> Result<Vec<Result<Answer, LedgerError>>, LedgerError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => SqliteConnection::connect_with(&self.options).await?,
        };
        let written = transact(&mut connection, operations).await;
        let usable = written.as_ref().err().is_none_or(leaves_connection);
        if usable {
            self.connection = Some(connection);
        }
        Ok(written?)
    }

    fn size(operation: &Operation) -> usize {
        match operation {
            Operation::Accept(event) => event.body.len(),
            Operation::Claim(_) | Operation::Settle(_) | Operation::Change(_) | Operation::Queue(_) => 0,
        }
    }

    fn needs_its_caller(operation: &Operation) -> bool {
        match operation {
            // A job that nobody knows to be theirs waits for its lease to end, and is charged a crash.
            Operation::Claim(_) => true,
            Operation::Accept(_) | Operation::Settle(_) | Operation::Change(_) | Operation::Queue(_) => false,
        }
    }
}

async fn transact(
    connection: &mut SqliteConnection,
    operations: &[Operation],
) -> Result<Vec<Result<Answer, LedgerError>>, sqlx::Error> {
    // A transaction that began as a reader could not become a writer while another process writes.
    let mut transaction = connection.begin_with("begin immediate").await?;
    let answers = write(&mut transaction, operations).await?;
    transaction.commit().await?;
    Ok(answers)
}

/// Writes the operations by kind. They are concurrent, so their order is of no account.
async fn write(
    transaction: &mut SqliteConnection,
    operations: &[Operation],
) -> Result<Vec<Result<Answer, LedgerError>>, sqlx::Error> {
    let mut events = Vec::new();
    let mut claims = Vec::new();
    let mut settlements = Vec::new();
    let mut answers = Vec::new();
    for (place, operation) in operations.iter().enumerate() {
        match operation {
            Operation::Accept(event) => events.push((place, event)),
            Operation::Claim(request) => claims.push((place, request)),
            Operation::Settle(settlement) => settlements.push((place, settlement)),
            Operation::Change(change) => {
                let changed = operate::change(transaction, change).await?;
                answers.push((place, changed.map(Answer::Changed)));
            }
            Operation::Queue(change) => {
                let changed = queues::change(transaction, change).await?;
                answers.push((place, Ok(Answer::Queue(changed))));
            }
        }
    }
    let (places, events): (Vec<_>, Vec<_>) = events.into_iter().unzip();
    let accepted = accept::accept(transaction, &events).await?;
    answers.extend(
        places
            .into_iter()
            .zip(accepted)
            .map(|(place, accepted)| (place, accepted.map(Answer::Accepted))),
    );

    let (places, settlements): (Vec<_>, Vec<_>) = settlements.into_iter().unzip();
    let settled = settle::settle(transaction, &settlements).await?;
    answers.extend(
        places
            .into_iter()
            .zip(settled)
            .map(|(place, settled)| (place, Ok(Answer::Settled(settled)))),
    );

    let (places, claims): (Vec<_>, Vec<_>) = claims.into_iter().unzip();
    let verdicts = claim::claim(transaction, &claims).await?;
    answers.extend(
        places
            .into_iter()
            .zip(verdicts)
            .map(|(place, verdict)| (place, verdict.map(Answer::Claim))),
    );

    answers.sort_unstable_by_key(|(place, _)| *place);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

/// Reads a URL without its `sqlite:`.
fn parse_path(path: &str) -> Result<PathBuf, OpenError> {
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() {
        return Err(OpenError::NoPath);
    }
    if path == ":memory:" {
        return Err(OpenError::InMemory);
    }
    if path.contains('?') {
        return Err(OpenError::Parameters);
    }
    Ok(PathBuf::from(path))
}

async fn make_file(path: &std::path::Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        tokio::fs::create_dir_all(folder).await?;
    }
    // Made here and not by SQLite, so that a folder without a right to write is told at once.
    tokio::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .await?;
    Ok(())
}
