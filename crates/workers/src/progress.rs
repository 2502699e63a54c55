use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::outage::Outage;

/// Whether the jobs of a process get on. One for all its workers, and for whoever asks after them.
#[derive(Clone)]
pub struct Progress {
    /// Whether the ledger lets jobs be claimed and settled, as all of them see it.
    pub(crate) ledger: Arc<Outage>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            ledger: Arc::new(Outage::new("worker")),
        }
    }
}

impl Progress {
    /// Tells for how long no job could be claimed or settled; `None` if the last could be.
    #[must_use]
    pub fn stuck(&self) -> Option<Duration> {
        self.ledger.lasting(Instant::now())
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}
