use std::error::Error;
use std::str::FromStr;
use std::time::Duration;

use posthaste_jobs::{EventId, JobId, Kind, Lane, Priority, State, Timestamp};
use sqlx::{ColumnIndex, Decode, FromRow, Row, Type};

use crate::value::{count, duration, text};

/// A job to accept.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Ours.
    pub id: JobId,
    /// What to do.
    pub kind: Kind,
    /// Payload as JSON of the kind's payload type.
    pub payload: String,
    /// For filters: the endpoint, if any.
    pub endpoint: Option<String>,
    /// How long from now until it is due.
    pub wait: Duration,
    /// How urgent it is among those of its queue.
    pub priority: Priority,
}

impl NewJob {
    /// Makes every text one that both databases can hold.
    pub(crate) fn storable(self) -> Self {
        Self {
            payload: text(self.payload),
            endpoint: self.endpoint.map(text),
            ..self
        }
    }

    /// Returns the state it begins in.
    pub(crate) fn state(&self) -> State {
        if self.wait.is_zero() {
            State::Queued
        } else {
            State::Scheduled
        }
    }
}

/// A job that the queue should hold, and how long until it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Which.
    pub job: JobId,
    /// Zero when due.
    pub wait: Duration,
    /// In which line of the queue it waits.
    pub lane: Lane,
    /// The `relay_at` that was read, by which the ledger knows that nothing has asked for the relay since.
    pub(crate) relay_at: Option<i64>,
}

/// Id, priority, whether it was tried, wait and `relay_at`, as a ledger reads them.
pub(crate) type DueColumns = (String, String, bool, i64, Option<i64>);

/// The columns of [`DueColumns`] that are read alike, whatever the job waits for.
macro_rules! due_columns {
    () => {
        " id, priority, attempts > 0 or state in ('retrying', 'parked') as tried, "
    };
}
pub(crate) use due_columns;

impl Due {
    /// Leaves out what cannot be read: it is no job of ours, and must not keep the others from the queue.
    pub(crate) fn read_all(rows: Vec<DueColumns>) -> Vec<Self> {
        rows.into_iter().filter_map(Self::read).collect()
    }

    fn read((job, priority, tried, wait, relay_at): DueColumns) -> Option<Self> {
        Some(Self {
            relay_at,
            job: job.parse().ok()?,
            wait: duration(wait),
            lane: Lane::of(priority.parse().unwrap_or(Priority::Normal), tried),
        })
    }
}

/// A job as listed.
#[derive(Clone, Debug, serde::Serialize)]
pub struct JobRow {
    /// Ours.
    pub id: JobId,
    /// What it does.
    pub kind: String,
    /// Where it waits.
    pub queue: String,
    /// How urgent it is there.
    pub priority: String,
    /// Where it stands.
    pub state: State,
    /// About which event.
    pub event_id: Option<EventId>,
    /// From whom.
    pub source: Option<String>,
    /// As the provider calls it.
    pub event_type: Option<String>,
    /// To whom.
    pub endpoint: Option<String>,
    /// Attempts spent since the last replay.
    pub attempts: u32,
    /// How often replayed.
    pub replays: u32,
    /// When accepted.
    pub created_at: Timestamp,
    /// When due.
    pub run_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// `permanent`, `exhausted`, `crashed`.
    pub dead_reason: Option<String>,
    /// Class of the last failed attempt; `crashed` if its worker was lost since.
    pub error_class: Option<String>,
    /// Last error.
    pub last_error: Option<String>,
}

/// Selects jobs as they are listed.
macro_rules! listed_jobs {
    () => {
        "select jobs.id, jobs.kind, jobs.queue, jobs.priority, jobs.state, jobs.event_id, events.source, events.event_type,
            jobs.endpoint, jobs.attempts, jobs.replays, jobs.created_at, jobs.run_at, jobs.finished_at,
            jobs.dead_reason, jobs.error_class, jobs.last_error
         from jobs left join events on events.id = jobs.event_id "
    };
}
pub(crate) use listed_jobs;

/// Reads the columns of `listed_jobs`, in order.
impl<'r, R: Row> FromRow<'r, R> for JobRow
where
    usize: ColumnIndex<R>,
    String: Decode<'r, R::Database> + Type<R::Database>,
    i32: Decode<'r, R::Database> + Type<R::Database>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        let id: String = row.try_get(0)?;
        let state: String = row.try_get(4)?;
        let event_id: Option<String> = row.try_get(5)?;
        let attempts: i32 = row.try_get(9)?;
        let replays: i32 = row.try_get(10)?;
        let finished_at: Option<i64> = row.try_get(13)?;
        Ok(Self {
            id: decode(&id)?,
            kind: row.try_get(1)?,
            queue: row.try_get(2)?,
            priority: row.try_get(3)?,
            state: decode(&state)?,
            event_id: event_id.as_deref().map(decode).transpose()?,
            source: row.try_get(6)?,
            event_type: row.try_get(7)?,
            endpoint: row.try_get(8)?,
            attempts: count(attempts.into()),
            replays: count(replays.into()),
            created_at: Timestamp::from_millis(row.try_get(11)?),
            run_at: Timestamp::from_millis(row.try_get(12)?),
            finished_at: finished_at.map(Timestamp::from_millis),
            dead_reason: row.try_get(14)?,
            error_class: row.try_get(15)?,
            last_error: row.try_get(16)?,
        })
    }
}

fn decode<T>(text: &str) -> Result<T, sqlx::Error>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    text.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}
