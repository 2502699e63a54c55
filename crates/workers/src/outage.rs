use posthaste_jobs::chain;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tracing::{info, warn};

/// Longest wait between two tries while a dependency is away.
const LONGEST: Duration = Duration::from_secs(5);

/// Follows whether something that we depend on is there, so that an outage is told once, not at each try.
/// Several tasks may share one: what fails for all of them at once is one failure.
#[derive(Debug)]
pub(crate) struct Outage {
    what: &'static str,
    /// Read for each job, so that the lock is left alone while all is well.
    away: AtomicBool,
    failures: Mutex<Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    count: u32,
    /// When the first was.
    since: Option<Instant>,
    /// The wait of the last that counted. Whatever fails within it failed with it.
    wait: Option<(Instant, Duration)>,
}

impl Outage {
    /// Starts with everything well; `what` names who notices, in the log.
    pub(crate) fn new(what: &'static str) -> Self {
        Self {
            what,
            away: AtomicBool::new(false),
            failures: Mutex::default(),
        }
    }

    /// Notes that it answered.
    pub(crate) fn over(&self) {
        if self.away.load(Ordering::Relaxed) && self.away.swap(false, Ordering::Relaxed) {
            let failures = std::mem::take(&mut *self.lock());
            info!(
                role = self.what,
                failures = failures.count,
                "going on after an outage"
            );
        }
    }

    /// Notes a failure at `now` and returns how long to wait: doubling from 100 ms to 5 s, half of it left to
    /// `chance`.
    pub(crate) fn failed(&self, now: Instant, error: &dyn std::error::Error, chance: f64) -> Duration {
        let mut failures = self.lock();
        failures.since.get_or_insert(now);
        if !self.away.swap(true, Ordering::Relaxed) {
            warn!(
                role = self.what,
                error = chain(error),
                "cannot go on, trying again"
            );
        }
        let longest = match failures.wait {
            Some((began, wait)) if now < began + wait => wait,
            _ => {
                let wait = Duration::from_millis(100)
                    .saturating_mul(2_u32.saturating_pow(failures.count))
                    .min(LONGEST);
                failures.count = failures.count.saturating_add(1);
                failures.wait = Some((now, wait));
                wait
            }
        };
        longest.mul_f64(0.5 + 0.5 * chance)
    }

    /// Tells for how long it has been away.
    pub(crate) fn lasting(&self, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.lock().since?))
    }

    fn lock(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_again_after_an_outage() {
        let outage = Outage::new("test");
        let error = std::io::Error::other("away");
        let mut now = Instant::now();

        let waits: Vec<u128> = (0..8)
            .map(|_| {
                let wait = outage.failed(now, &error, 1.0);
                now += wait;
                wait.as_millis()
            })
            .collect();
        outage.over();

        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(outage.failed(now, &error, 1.0).as_millis(), 100);
    }

    #[test]
    fn an_outage_lasts_from_its_first_failure_to_its_end() {
        let outage = Outage::new("test");
        let error = std::io::Error::other("away");
        let (began, later) = (Instant::now(), Instant::now() + Duration::from_secs(12));
        assert_eq!(outage.lasting(later), None);

        outage.failed(began, &error, 1.0);
        outage.failed(began + Duration::from_secs(7), &error, 1.0);

        assert_eq!(outage.lasting(later), Some(later - began));
        outage.over();
        assert_eq!(outage.lasting(later), None);
    }

    #[test]
    fn what_fails_for_many_at_once_is_one_failure() {
        let outage = Outage::new("test");
        let error = std::io::Error::other("away");
        let now = Instant::now();

        let waits: Vec<u128> = (0..64)
            .map(|_| outage.failed(now, &error, 1.0).as_millis())
            .collect();

        assert_eq!(waits, [100; 64]);
        assert_eq!(
            outage
                .failed(now + Duration::from_millis(100), &error, 1.0)
                .as_millis(),
            200
        );
    }
}
