use bytes::Bytes;
use posthaste_jobs::{EventId, Timestamp};

use crate::Headers;
use crate::error::LedgerError;
use crate::job::NewJob;
use crate::value::{count, parse, text};

/// An event to accept, with the jobs that it owes.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Ours.
    pub id: EventId,
    /// Name of the source.
    pub source: String,
    /// The provider's id of the event, or a digest of the body. With the source it is the event's identity.
    pub provider_id: String,
    /// As the provider calls it.
    pub event_type: Option<String>,
    /// As received.
    pub headers: Headers,
    /// As received, byte for byte.
    pub body: Bytes,
    /// One per matching route; none = unrouted.
    pub jobs: Vec<NewJob>,
}

impl NewEvent {
    /// Makes every text one that both databases can hold.
    pub(crate) fn storable(self) -> Self {
        Self {
            source: text(self.source),
            provider_id: text(self.provider_id),
            event_type: self.event_type.map(text),
            jobs: self.jobs.into_iter().map(NewJob::storable).collect(),
            ..self
        }
    }

    /// Tells what it means that `stored` has this event's identity. An accept that is made again because
    /// its answer was lost finds itself.
    pub(crate) fn found(&self, stored: EventId) -> Accepted {
        if stored == self.id {
            Accepted::New
        } else {
            Accepted::Duplicate(stored)
        }
    }
}

/// What became of an accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Committed, with its jobs.
    New,
    /// This source has sent it before; this is the id it got then. Nothing was written.
    Duplicate(EventId),
}

/// What a delivery needs to know of its event.
#[derive(Clone, Debug)]
pub struct EventData {
    /// Ours.
    pub id: EventId,
    /// Name of the source.
    pub source: String,
    /// As the provider calls it.
    pub event_type: Option<String>,
    /// When we accepted it.
    pub received_at: Timestamp,
    /// As received.
    pub headers: Headers,
    /// As received.
    pub body: Bytes,
}

/// An event as listed.
#[derive(Clone, Debug, serde::Serialize)]
pub struct EventRow {
    /// Ours.
    pub id: EventId,
    /// Name of the source.
    pub source: String,
    /// The provider's id.
    pub provider_id: String,
    /// As the provider calls it.
    pub event_type: Option<String>,
    /// When.
    pub received_at: Timestamp,
    /// Bytes.
    pub size: u64,
    /// How many jobs it has; 0 = unrouted.
    pub jobs: u32,
}

/// The columns of `listed_events`.
pub(crate) type ListedEvent = (String, String, String, Option<String>, i64, i64, i64);

/// Selects events as they are listed.
macro_rules! listed_events {
    () => {
        "select events.id, events.source, events.provider_id, events.event_type, events.received_at,
            cast(octet_length(events.body) as bigint),
            (select count(*) from jobs where jobs.event_id = events.id)
         from events "
    };
}
pub(crate) use listed_events;

impl EventRow {
    pub(crate) fn read(row: ListedEvent) -> Result<Self, LedgerError> {
        let (event, source, provider_id, event_type, received_at, size, jobs) = row;
        Ok(Self {
            id: parse(&event)?,
            source,
            provider_id,
            event_type,
            received_at: Timestamp::from_millis(received_at),
            size: u64::try_from(size).unwrap_or(0),
            jobs: count(jobs),
        })
    }
}
