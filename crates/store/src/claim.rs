use std::time::Duration;

use bytes::Bytes;
use posthaste_jobs::{Attempt, EventId, JobId, Kind, State, Timestamp, UnknownKind};

use crate::error::LedgerError;
use crate::value::{count, duration, parse};
use crate::{EventData, Headers};

/// How many workers a job may take down with it. When it has, it is not started again.
pub(crate) const CRASH_BUDGET: i32 = 3;

/// Why a worker counts as lost: all that is known of its end.
macro_rules! lost {
    () => {
        "' was lost: it stopped renewing its lease (killed, aborted, out of memory or cut off)'"
    };
}
pub(crate) use lost;

/// How long before its time a job may start, in milliseconds: the queue's clock is another one.
pub(crate) const EARLY: i64 = 500;

/// Bodies up to this many bytes come along with a claim. A larger one is read on its own, so that the
/// claims of one batch fit into memory whatever they are about.
pub(crate) const BODY_ALONG: i64 = 256 * 1024;

/// Right to run a job: its fencing token. A settlement with an older token changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Which job.
    pub job: JobId,
    /// Grows by one at each claim.
    pub token: i64,
}

/// The answer to "may I run this job now?".
#[derive(Clone, Debug)]
pub enum Claim {
    /// It is yours.
    Started(Box<Claimed>),
    /// It has ended (whichever way). Acknowledge and move on.
    Finished(State),
    /// Not due yet: come back after this long.
    NotDue(Duration),
    /// Another worker holds the lease for at most this long. Come back then.
    InProgress(Duration),
    /// It has crashed its workers too often, and became a dead letter just now.
    Crashed,
    /// One more lost worker would make it a dead letter, so it is to run by itself: whatever then happens to
    /// the worker is its own doing. Claim it with [`Company::Alone`].
    Suspect,
    /// The ledger knows no such job.
    Unknown,
}

/// What runs beside a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// Other jobs, in the same process.
    Others,
    /// Nothing else in the process.
    Alone,
}

/// A job that is ours to run.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// Right to settle it.
    pub lease: Lease,
    /// What to do; a later program may have written a kind that this one does not know.
    pub kind: Result<Kind, UnknownKind>,
    /// Its data, JSON.
    pub payload: String,
    /// The attempt that is being made, within the run since the last replay.
    pub attempt: Attempt,
    /// How often it was replayed by an operator.
    pub replays: u32,
    /// The event it is about.
    pub event: Option<EventData>,
}

/// A claim to be made.
#[derive(Clone, Debug)]
pub(crate) struct ClaimRequest {
    pub(crate) job: JobId,
    pub(crate) worker: String,
    pub(crate) lease: Duration,
    pub(crate) company: Company,
}

/// What the ledger says to a claim.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) claim: Claim,
    /// The event whose body is still to be read.
    pub(crate) body_of: Option<EventId>,
}

impl From<Claim> for Verdict {
    fn from(claim: Claim) -> Self {
        Self { claim, body_of: None }
    }
}

/// A job that a claim has changed.
pub(crate) struct ClaimedJob {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) kind: String,
    pub(crate) payload: String,
    pub(crate) attempts: i32,
    pub(crate) replays: i32,
    pub(crate) token: i64,
    pub(crate) event: Option<ClaimedEvent>,
}

/// The event of a job that a claim has changed.
#[derive(Clone)]
pub(crate) struct ClaimedEvent {
    pub(crate) id: String,
    pub(crate) source: String,
    pub(crate) event_type: Option<String>,
    pub(crate) received_at: i64,
    pub(crate) headers: Bytes,
    /// `None`: too large to come along.
    pub(crate) body: Option<Bytes>,
}

impl ClaimedJob {
    pub(crate) fn verdict(self) -> Result<Verdict, LedgerError> {
        if parse::<State>(&self.state)? == State::Dead {
            return Ok(Claim::Crashed.into());
        }
        let mut body_of = None;
        let event = match self.event {
            None => None,
            Some(event) => {
                let id: EventId = parse(&event.id)?;
                if event.body.is_none() {
                    body_of = Some(id);
                }
                Some(EventData {
                    id,
                    source: event.source,
                    event_type: event.event_type,
                    received_at: Timestamp::from_millis(event.received_at),
                    headers: Headers::from_block(event.headers),
                    body: event.body.unwrap_or_default(),
                })
            }
        };
        let claimed = Claimed {
            lease: Lease {
                job: parse(&self.id)?,
                token: self.token,
            },
            kind: self.kind.parse(),
            payload: self.payload,
            attempt: Attempt::new(count(self.attempts.into()).saturating_add(1)).unwrap_or(Attempt::FIRST),
            replays: count(self.replays.into()),
            event,
        };
        Ok(Verdict {
            claim: Claim::Started(Box::new(claimed)),
            body_of,
        })
    }
}

/// Where a job stands that was not claimed.
pub(crate) struct Standing {
    pub(crate) state: String,
    /// Until it is due, or until its lease ends, in milliseconds.
    pub(crate) wait: i64,
    /// Workers lost with it.
    pub(crate) crashes: i32,
    /// Who claimed it last.
    pub(crate) worker: Option<String>,
}

impl Standing {
    /// Says why `request` did not get the job.
    pub(crate) fn refuse(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        let state = parse::<State>(&self.state)?;
        let (ripe, lost) = match state {
            State::Running => (self.wait < 0, self.worker.as_ref() != Some(&request.worker)),
            State::Queued | State::Scheduled | State::Retrying | State::Parked => (self.wait <= EARLY, false),
            State::Succeeded | State::Dead | State::Cancelled | State::Discarded => {
                return Ok(Claim::Finished(state));
            }
        };
        if ripe && request.company == Company::Others && self.crashes + i32::from(lost) == CRASH_BUDGET - 1 {
            return Ok(Claim::Suspect);
        }
        Ok(match state {
            State::Running => Claim::InProgress(duration(self.wait)),
            _ => Claim::NotDue(duration(self.wait)),
        })
    }
}
