use std::sync::Arc;
use std::time::SystemTime;

use posthaste_jobs::{Clock, Timestamp};

/// Returns the time of day: the one place that reads it.
#[expect(clippy::disallowed_methods, reason = "everything else takes this clock")]
pub(crate) fn now() -> Timestamp {
    SystemTime::now().into()
}

/// Returns [`now`] as the rooms take it.
pub(crate) fn system() -> Clock {
    Arc::new(now)
}
