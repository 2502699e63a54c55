use std::time::Duration;

use crate::Depth;

/// What a queue holds, and whether anybody takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Due, waiting, in the order of [`Lane::ALL`](posthaste_jobs::Lane::ALL).
    pub lanes: [u64; 4],
    /// Not due yet.
    pub scheduled: u64,
    /// Fetched, not acknowledged.
    pub leased: u64,
    /// How long the one that has been due longest has waited.
    pub oldest: Option<Duration>,
    /// How long ago somebody last took something.
    pub fetched: Option<Duration>,
    /// Whether nothing is handed out, because an operator said so.
    pub paused: bool,
}

impl From<Survey> for Depth {
    fn from(survey: Survey) -> Self {
        Self {
            ready: survey.lanes.iter().sum(),
            scheduled: survey.scheduled,
            leased: survey.leased,
        }
    }
}
