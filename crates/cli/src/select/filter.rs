use clap::Args;
use posthaste_jobs::{EventId, JobId, Kind, Queue, Timestamp};
use posthaste_store::{EventFilter, JobFilter};

use super::known::{kind, queue};
use super::moment::Moment;

/// Which jobs; all that are given must hold.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which")]
pub(crate) struct JobChoice {
    /// Only these; may be repeated
    #[arg(long = "id", value_name = "ID")]
    pub(crate) ids: Vec<JobId>,
    /// In this queue
    #[arg(long, value_name = "NAME", value_parser = queue)]
    pub(crate) queue: Option<Queue>,
    /// Of this kind, as in webhook.delivery
    #[arg(long, value_name = "KIND", value_parser = kind)]
    pub(crate) kind: Option<Kind>,
    /// About events from this source
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// To this endpoint
    #[arg(long, value_name = "NAME")]
    pub(crate) endpoint: Option<String>,
    /// Whose last error is of this class, or has this text in it
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
    /// At or after: 2h (ago), or a time like 2026-12-01T03:00:00Z; dead letters count from their end
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<Moment>,
    /// Before, written as for --since
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<Moment>,
}

impl JobChoice {
    /// Tells whether anything but ids narrows the choice.
    pub(crate) fn has_filters(&self) -> bool {
        self.queue.is_some()
            || self.kind.is_some()
            || self.source.is_some()
            || self.endpoint.is_some()
            || self.error.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }

    /// Returns what the ledger takes.
    pub(crate) fn filter(&self, now: Timestamp) -> JobFilter {
        JobFilter {
            ids: self.ids.clone(),
            queue: self.queue,
            kind: self.kind,
            source: self.source.clone(),
            endpoint: self.endpoint.clone(),
            error: self.error.clone(),
            since: self.since.map(|moment| moment.from(now)),
            until: self.until.map(|moment| moment.from(now)),
            ..JobFilter::default()
        }
    }
}

/// Which events; all that are given must hold.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which")]
pub(crate) struct EventChoice {
    /// From this source
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// Of exactly this type
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) event_type: Option<String>,
    /// With this id of the provider's
    #[arg(long, value_name = "ID")]
    pub(crate) provider_id: Option<String>,
    /// Only those that no route matched
    #[arg(long)]
    pub(crate) unrouted: bool,
    /// At or after: 2h (ago), or a time like 2026-12-01T03:00:00Z
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<Moment>,
    /// Before, written as for --since
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<Moment>,
    /// Older than this event, which is how a long list goes on
    #[arg(long, value_name = "ID")]
    pub(crate) before: Option<EventId>,
}

impl EventChoice {
    /// Tells whether anything narrows the choice.
    pub(crate) fn has_filters(&self) -> bool {
        self.source.is_some()
            || self.event_type.is_some()
            || self.provider_id.is_some()
            || self.unrouted
            || self.since.is_some()
            || self.until.is_some()
            || self.before.is_some()
    }

    /// Returns what the ledger takes.
    pub(crate) fn filter(&self, now: Timestamp) -> EventFilter {
        EventFilter {
            source: self.source.clone(),
            event_type: self.event_type.clone(),
            provider_id: self.provider_id.clone(),
            unrouted: self.unrouted,
            since: self.since.map(|moment| moment.from(now)),
            until: self.until.map(|moment| moment.from(now)),
        }
    }
}
