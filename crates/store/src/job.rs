use std::time::Duration;

use posthaste_jobs::{EventId, JobId, Kind, Lane, Priority, Queue, State, Timestamp};

use crate::error::LedgerError;
use crate::value::{count, duration, parse, text};

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
    /// Where.
    pub queue: Queue,
    /// Zero when due.
    pub wait: Duration,
    /// In which line of the queue it waits.
    pub lane: Lane,
    /// The `relay_at` that was read, by which the ledger knows that nothing has asked for the relay since.
    pub(crate) relay_at: Option<i64>,
}

/// Id, queue, wait and `relay_at` as a ledger reads them.
pub(crate) type DueColumns = (String, String, i64, Option<i64>);

impl Due {
    pub(crate) fn read((job, queue, wait, relay_at): DueColumns) -> Result<Self, LedgerError> {
        Ok(Self {
            relay_at,
            job: parse(&job)?,
            queue: parse(&queue)?,
            wait: duration(wait),
            lane: Lane::of(Priority::Normal, false),
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

/// The columns of `listed_jobs`.
pub(crate) type ListedJob = (
    String,
    String,
    String,
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    i32,
    i32,
    i64,
    i64,
    Option<i64>,
    Option<String>,
    Option<String>,
    Option<String>,
);

/// Selects jobs as they are listed.
macro_rules! listed_jobs {
    () => {
        "select jobs.id, jobs.kind, jobs.queue, jobs.state, jobs.event_id, events.source, events.event_type,
            jobs.endpoint, jobs.attempts, jobs.replays, jobs.created_at, jobs.run_at, jobs.finished_at,
            jobs.dead_reason, jobs.error_class, jobs.last_error
         from jobs left join events on events.id = jobs.event_id "
    };
}
pub(crate) use listed_jobs;

impl JobRow {
    pub(crate) fn read(row: ListedJob) -> Result<Self, LedgerError> {
        let (
            id,
            kind,
            queue,
            state,
            event_id,
            source,
            event_type,
            endpoint,
            attempts,
            replays,
            created_at,
            run_at,
            finished_at,
            dead_reason,
            error_class,
            last_error,
        ) = row;
        Ok(Self {
            id: parse(&id)?,
            kind,
            queue,
            state: parse(&state)?,
            event_id: event_id.as_deref().map(parse).transpose()?,
            source,
            event_type,
            endpoint,
            attempts: count(attempts.into()),
            replays: count(replays.into()),
            created_at: Timestamp::from_millis(created_at),
            run_at: Timestamp::from_millis(run_at),
            finished_at: finished_at.map(Timestamp::from_millis),
            dead_reason,
            error_class,
            last_error,
        })
    }
}
