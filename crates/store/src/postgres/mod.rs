//! The ledger on a PostgreSQL server.
//!
//! Accepts, claims and settlements have a writer with a connection each. A batch is one statement that
//! takes arrays and commits itself, so it costs one round trip. Everything else goes through a pool.

mod accept;
mod claim;
mod operate;
mod queues;
mod recover;
mod settle;
mod writer;

use std::sync::LazyLock;
use std::time::Duration;

use posthaste_jobs::JobId;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::accept::Accept;
use self::claim::ClaimJobs;
use self::settle::Settle;
use self::writer::Committer;
use crate::batch::Writer;
use crate::claim::{ClaimRequest, Verdict};
use crate::error::{LedgerError, OpenError, TimedOut};
use crate::read::Reader;
use crate::schema::{behind, compare, migrate_error, migrator};
use crate::value::parse;
use crate::{Accepted, Config, NewEvent, Settled, Settlement};

static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator([
        (
            1,
            "ledger",
            include_str!("../../../../migrations/postgres/0001_ledger.sql"),
        ),
        (
            2,
            "queues",
            include_str!("../../../../migrations/postgres/0002_queues.sql"),
        ),
    ])
});

/// How long to wait for a connection, made or from the pool.
const CONNECT: Duration = Duration::from_secs(3);

/// How long a read or an operator's write may take.
const STATEMENT: Duration = Duration::from_secs(30);

/// Connections of the writers.
const WRITERS: u32 = 3;

/// The server's clock, in milliseconds, read once for the statement.
macro_rules! clock {
    () => {
        "clock (now) as (select (extract(epoch from clock_timestamp()) * 1000)::bigint) "
    };
}
use clock;

/// The ledger on a server.
#[derive(Debug)]
pub(crate) struct Postgres {
    options: PgConnectOptions,
    pool: PgPool,
    accepts: Writer<Committer<Accept>>,
    claims: Writer<Committer<ClaimJobs>>,
    settlements: Writer<Committer<Settle>>,
}

impl Postgres {
    /// Connects to nothing yet.
    pub(crate) fn open(
        config: &Config,
        tasks: &TaskTracker,
        closing: &CancellationToken,
    ) -> Result<Self, OpenError> {
        let readers = config.max_connections.saturating_sub(WRITERS);
        if readers == 0 {
            return Err(OpenError::TooFewConnections {
                least: WRITERS + 1,
                given: config.max_connections,
            });
        }
        let options: PgConnectOptions = config.url.parse().map_err(OpenError::BadUrl)?;
        let options = options
            .application_name("posthaste")
            .disable_statement_logging()
            // Compiling a statement takes longer than any of ours runs.
            .options([("jit", "off")]);
        let pool = PgPoolOptions::new()
            .max_connections(readers)
            .acquire_timeout(CONNECT)
            .connect_lazy_with(options.clone().options([
                ("statement_timeout", STATEMENT.as_millis().to_string().as_str()),
                // A plan that is kept from when the tables were empty reads them from end to end.
                ("plan_cache_mode", "force_custom_plan"),
            ]));
        Ok(Self {
            accepts: Writer::start(Committer::new(&options), tasks, closing.clone()),
            claims: Writer::start(Committer::new(&options), tasks, closing.clone()),
            settlements: Writer::start(Committer::new(&options), tasks, closing.clone()),
            options,
            pool,
        })
    }

    /// Runs the migrations under an advisory lock, on a connection of its own: it may wait for another
    /// process for long, and the lock ends with the connection whatever happens.
    pub(crate) async fn migrate(&self) -> Result<(), LedgerError> {
        let mut connection = connect(&self.options).await?;
        // `run` takes an `Acquire`, whose lifetimes keep a future that holds it from being `Send`.
        let migrated = MIGRATIONS
            .run_direct(None, &mut connection, false)
            .await
            .map_err(migrate_error);
        connection.close_hard().await?;
        migrated
    }

    pub(crate) fn reader(&self) -> Reader<'_, sqlx::Postgres> {
        Reader(&self.pool)
    }

    pub(crate) async fn check(&self) -> Result<(), LedgerError> {
        let applied = sqlx::query_as("select version, checksum from _sqlx_migrations where success")
            .fetch_all(&self.pool)
            .await;
        match applied {
            Ok(applied) => Ok(compare(&MIGRATIONS, applied)?),
            // No such table.
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("42P01") => {
                Err(behind(&MIGRATIONS).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }

    pub(crate) async fn accept(&self, event: NewEvent) -> Result<Accepted, LedgerError> {
        self.accepts.write(event).await
    }

    pub(crate) async fn claim(&self, request: ClaimRequest) -> Result<Verdict, LedgerError> {
        self.claims.write(request).await
    }

    pub(crate) async fn settle(&self, settlement: Settlement) -> Result<Settled, LedgerError> {
        self.settlements.write(settlement).await
    }
}

async fn connect(options: &PgConnectOptions) -> Result<PgConnection, LedgerError> {
    let connection = timeout(CONNECT, PgConnection::connect_with(options))
        .await
        .map_err(|_| TimedOut(CONNECT))?;
    Ok(connection?)
}

fn parse_all(ids: Vec<String>) -> Result<Vec<JobId>, LedgerError> {
    ids.iter().map(|id| parse(id)).collect()
}
