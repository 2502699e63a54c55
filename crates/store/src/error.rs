use std::error::Error as StdError;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// Why the ledger could not be opened: a user's mistake, not an outage. Never holds the URL, whose
/// password is nobody's business.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL names no kind of ledger that there is.
    #[error("ledger.url must begin with sqlite: or postgres://, not with {scheme:?}")]
    UnknownScheme {
        /// What stands before the first colon.
        scheme: String,
    },
    /// The URL names no file.
    #[error("ledger.url names no file: sqlite:PATH is expected")]
    NoPath,
    /// The URL asks for a ledger that would forget everything.
    #[error("ledger.url must name a file: a ledger in memory would forget what it has accepted")]
    InMemory,
    /// The URL of a file has parameters.
    #[error("ledger.url takes no parameters after a path: sqlite:PATH is expected")]
    Parameters,
    /// The URL of a server cannot be read.
    #[error("ledger.url is no URL like postgres://user:password@host/db")]
    BadUrl(#[source] sqlx::Error),
    /// There would be no connection left to read with.
    #[error("ledger.max_connections must be at least {least}, not {given}")]
    TooFewConnections {
        /// The least that works.
        least: u32,
        /// What was asked for.
        given: u32,
    },
    /// The folder or the file cannot be made.
    #[error("cannot make the ledger's file {}", path.display())]
    File {
        /// What was to be made.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// Why the ledger did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// It cannot be reached, or is too busy; trying again later may work. Whether a write was done is not
    /// known.
    #[error("the ledger cannot be reached")]
    Unavailable(#[source] Box<dyn StdError + Send + Sync>),
    /// It answered, and the answer is an error; trying again will not help.
    #[error("the ledger refused")]
    Refused(#[source] Box<dyn StdError + Send + Sync>),
}

impl LedgerError {
    /// Makes one error into one for each of those who waited for the same write.
    pub(crate) fn share(self) -> impl Fn() -> Self {
        let (cause, make): (_, fn(_) -> Self) = match self {
            Self::Unavailable(cause) => (cause, Self::Unavailable),
            Self::Refused(cause) => (cause, Self::Refused),
        };
        let cause: Arc<dyn StdError + Send + Sync> = cause.into();
        move || make(Box::new(Shared(Arc::clone(&cause))))
    }
}

impl From<sqlx::Error> for LedgerError {
    fn from(error: sqlx::Error) -> Self {
        if may_pass(&error) {
            Self::Unavailable(Box::new(error))
        } else {
            Self::Refused(Box::new(error))
        }
    }
}

/// Tells whether the same statement may work later.
fn may_pass(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default();
            if error.try_downcast_ref::<PgDatabaseError>().is_some() {
                // Connection, transaction rollback, resources, a time-out or a lock, a stop, the system;
                // and a write on a standby, until the primary is found.
                ["08", "40", "53", "55P03", "57", "58", "25006"]
                    .iter()
                    .any(|class| code.starts_with(class))
            } else {
                // The low byte is the kind: busy, locked, no memory, read-only, I/O, full, cannot open.
                let kind = code.parse().map_or(0, |code: u32| code & 0xff);
                matches!(kind, 5 | 6 | 7 | 8 | 10 | 13 | 14)
            }
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => true,
        _ => false,
    }
}

/// Tells whether the same statement may work at once: two transactions stood in each other's way.
pub(crate) fn is_conflict(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .and_then(|error| error.code())
        .is_some_and(|code| code == "40001" || code == "40P01")
}

/// Tells whether a connection can be used on after an error.
pub(crate) fn leaves_connection(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(cause) => match cause.try_downcast_ref::<PgDatabaseError>() {
            // A server that turned into a standby keeps its connections; the primary is another.
            Some(cause) => cause.severity() == PgSeverity::Error && cause.code() != "25006",
            None => !may_pass(error),
        },
        _ => false,
    }
}

/// Nobody answered in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", .0.as_secs())]
pub(crate) struct TimedOut(pub(crate) std::time::Duration);

impl From<TimedOut> for LedgerError {
    fn from(error: TimedOut) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

/// The ledger was closed, or is being closed.
#[derive(Debug, thiserror::Error)]
#[error("the ledger is closed")]
pub(crate) struct Closed;

impl From<Closed> for LedgerError {
    fn from(error: Closed) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

/// An event was met as a duplicate's first, and was gone when it was looked up.
#[derive(Debug, thiserror::Error)]
#[error("the event was removed meanwhile")]
pub(crate) struct Vanished;

impl From<Vanished> for LedgerError {
    fn from(error: Vanished) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

/// Jobs were to be added to an event that is not there.
#[derive(Debug, thiserror::Error)]
#[error("no event has the id {0}")]
pub(crate) struct NoSuchEvent(pub(crate) posthaste_jobs::EventId);

impl From<NoSuchEvent> for LedgerError {
    fn from(error: NoSuchEvent) -> Self {
        Self::Refused(Box::new(error))
    }
}

/// A cause that several errors have in common. Shows as the cause itself.
#[derive(Debug)]
struct Shared(Arc<dyn StdError + Send + Sync>);

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Shared {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}
