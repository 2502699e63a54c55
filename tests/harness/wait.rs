//! Waiting on a state.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than anything here should take on a busy machine; reached only by a failure.
pub const LONG: Duration = Duration::from_secs(60);

/// Waits until `condition` holds.
///
/// # Panics
///
/// Says `what` was waited for when it does not hold within `deadline`.
#[track_caller]
pub fn until(deadline: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(
            began.elapsed() < deadline,
            "waited {deadline:?} in vain until {what}"
        );
        sleep(Duration::from_millis(20));
    }
}
