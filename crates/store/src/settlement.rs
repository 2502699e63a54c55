use posthaste_jobs::{Ending, State, Timestamp};

use crate::Lease;
use crate::value::{count, millis, text};

/// The record of one try. Snoozes leave none.
#[derive(Clone, Debug, serde::Serialize)]
pub struct AttemptRecord {
    /// From 1, over all runs.
    pub number: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
    /// `succeeded` or `failed`.
    pub outcome: String,
    /// Kind of failure, a stable word: `timeout`, `connect`, `status` …
    pub error_class: Option<String>,
    /// What happened, for people; no payload, no secret.
    pub error: Option<String>,
    /// HTTP status, if there was one.
    pub http_status: Option<u16>,
    /// First bytes of the response, lossily as text.
    pub response: Option<String>,
    /// Which worker process.
    pub worker: String,
}

/// The columns of `attempts`, in order, without the job.
pub(crate) type ListedAttempt = (
    i32,
    i64,
    i64,
    String,
    Option<String>,
    Option<String>,
    Option<i32>,
    Option<String>,
    String,
);

impl AttemptRecord {
    pub(crate) fn read(row: ListedAttempt) -> Self {
        let (number, started_at, duration_ms, outcome, error_class, error, http_status, response, worker) =
            row;
        Self {
            number: count(number.into()),
            started_at: Timestamp::from_millis(started_at),
            duration_ms: u64::try_from(duration_ms).unwrap_or(0),
            outcome,
            error_class,
            error,
            http_status: http_status.and_then(|status| u16::try_from(status).ok()),
            response,
            worker,
        }
    }
}

/// The ending of a try, to be written.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// Whose.
    pub lease: Lease,
    /// How it ended for the job. Every ending but a snooze spends an attempt.
    pub ending: Ending,
    /// What is recorded of the try; `None` for a snooze, whose record would not be written. `number` is
    /// assigned by the ledger.
    pub attempt: Option<AttemptRecord>,
    /// Last error for people, on failures and snoozes.
    pub error: Option<String>,
}

impl Settlement {
    /// Makes every text one that both databases can hold, and takes the record off a snooze.
    pub(crate) fn storable(self) -> Self {
        let snoozed = matches!(self.ending, Ending::Parked { .. });
        let attempt = self.attempt.filter(|_| !snoozed).map(|attempt| AttemptRecord {
            outcome: text(attempt.outcome),
            error_class: attempt.error_class.map(text),
            error: attempt.error.map(text),
            response: attempt.response.map(text),
            worker: text(attempt.worker),
            ..attempt
        });
        Self {
            attempt,
            error: self.error.map(text),
            ..self
        }
    }

    /// Returns what the ending changes in the job.
    pub(crate) fn change(&self) -> Change {
        let (state, wait, dead_reason) = match self.ending {
            Ending::Succeeded => (State::Succeeded, None, None),
            Ending::Retrying { wait } => (State::Retrying, Some(millis(wait)), None),
            Ending::Parked { wait } => (State::Parked, Some(millis(wait)), None),
            Ending::Dead(reason) => (State::Dead, None, Some(reason.as_str())),
        };
        Change {
            state: state.as_str(),
            wait,
            spent: i32::from(state != State::Parked),
            dead_reason,
        }
    }
}

/// What an ending changes in its job.
pub(crate) struct Change {
    pub(crate) state: &'static str,
    /// Until it is due again, in milliseconds; `None`: it has ended.
    pub(crate) wait: Option<i64>,
    /// Attempts spent.
    pub(crate) spent: i32,
    pub(crate) dead_reason: Option<&'static str>,
}

/// Whether a settlement was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Written.
    Written,
    /// The lease was lost: another worker has it, or an operator closed the job. Nothing was written.
    LeaseLost,
}
