//! Brings the ledger's schema up to date at start, however long the ledger is away.

use posthaste_jobs::chain;
use std::time::Duration;

use posthaste_store::Ledger;
use tracing::{info, warn};

/// How long a start waits for the schema before it goes on without.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait between two tries.
const LONGEST: Duration = Duration::from_secs(10);

/// Migrates until it works.
pub(crate) async fn until_current(ledger: &Ledger) {
    let mut failures = 0_u32;
    while let Err(error) = ledger.migrate().await {
        let wait = wait(failures, rand::random());
        if failures == 0 {
            warn!(
                error = chain(&error),
                "the ledger cannot be brought up to date, trying again"
            );
        }
        failures = failures.saturating_add(1);
        tokio::time::sleep(wait).await;
    }
    if failures > 0 {
        info!(failures, "the ledger is up to date after an outage");
    }
}

/// Doubles from 200 ms, half of it left to `chance`.
fn wait(failures: u32, chance: f64) -> Duration {
    let doubled = Duration::from_millis(200)
        .saturating_mul(2_u32.saturating_pow(failures))
        .min(LONGEST);
    doubled.mul_f64(0.5 + 0.5 * chance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let waits: Vec<u128> = (0..8).map(|failures| wait(failures, 1.0).as_millis()).collect();

        assert_eq!(waits, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(wait(u32::MAX, 0.0), LONGEST / 2);
    }
}
