use std::time::Duration;

use posthaste_jobs::{JobId, Lane};

/// An id to be put into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which job.
    pub job: JobId,
    /// How long until it is due, to the millisecond.
    pub wait: Duration,
    /// Where it waits once it is due.
    pub lane: Lane,
}

impl Entry {
    /// Makes an entry that is due at once.
    #[must_use]
    pub const fn due(job: JobId, lane: Lane) -> Self {
        Self {
            job,
            wait: Duration::ZERO,
            lane,
        }
    }
}
