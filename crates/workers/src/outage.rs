use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tracing::{info, warn};

use crate::failure::chain;

/// Longest wait between two tries while a dependency is away.
const LONGEST: Duration = Duration::from_secs(5);

/// Follows whether something that we depend on is there, so that an outage is told once, not at each try.
/// Several tasks may share one.
#[derive(Debug)]
pub(crate) struct Outage {
    what: &'static str,
    failures: AtomicU32,
}

impl Outage {
    /// Starts with everything well; `what` names who notices, in the log.
    pub(crate) const fn new(what: &'static str) -> Self {
        Self {
            what,
            failures: AtomicU32::new(0),
        }
    }

    /// Notes that it answered.
    pub(crate) fn over(&self) {
        // Read first: this is called for each job, and hardly ever has anything to tell.
        if self.failures.load(Ordering::Relaxed) > 0 {
            let failures = self.failures.swap(0, Ordering::Relaxed);
            if failures > 0 {
                info!(role = self.what, failures, "going on after an outage");
            }
        }
    }

    /// Notes a failure and returns how long to wait: doubling from 100 ms to 5 s, half of it left to `chance`.
    pub(crate) fn failed(&self, error: &dyn std::error::Error, chance: f64) -> Duration {
        let before = self.failures.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            warn!(
                role = self.what,
                error = chain(error),
                "cannot go on, trying again"
            );
        }
        let doubled = Duration::from_millis(100)
            .saturating_mul(2_u32.saturating_pow(before))
            .min(LONGEST);
        doubled.mul_f64(0.5 + 0.5 * chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_again_after_an_outage() {
        let outage = Outage::new("test");
        let error = std::io::Error::other("away");

        let waits: Vec<u128> = (0..8).map(|_| outage.failed(&error, 1.0).as_millis()).collect();
        outage.over();

        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(outage.failed(&error, 1.0).as_millis(), 100);
    }
}
