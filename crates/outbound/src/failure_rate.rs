use std::time::{Duration, Instant};

use failsafe::FailurePolicy;

use crate::BreakerConfig;

/// A window is counted in as many slices, so that a call is forgotten between nine tenths of the
/// window and a whole one after it has ended.
const SLICES: usize = 10;

/// Opens when `failure_rate` of at least `min_calls` calls within `window` have failed.
///
/// failsafe's own rate over a window is a moving average that stays silent until the first window
/// has passed, and weighs calls by the time between them: a burst of ten failures would not open it.
pub(crate) struct FailureRate {
    config: BreakerConfig,
    slice: Duration,
    began: Instant,
    slices: [Slice; SLICES],
}

#[derive(Clone, Copy, Default)]
struct Slice {
    /// Which slice since `began`; the place is taken over when its turn comes again.
    number: u128,
    calls: u32,
    failures: u32,
}

impl FailureRate {
    pub(crate) fn new(config: BreakerConfig, now: Instant) -> Self {
        Self {
            config,
            slice: (config.window / SLICES as u32).max(Duration::from_nanos(1)),
            began: now,
            slices: [Slice::default(); SLICES],
        }
    }

    fn record(&mut self, failed: bool, now: Instant) {
        let number = self.number(now);
        let slice = &mut self.slices[(number % SLICES as u128) as usize];
        if slice.number != number {
            *slice = Slice {
                number,
                ..Slice::default()
            };
        }
        slice.calls += 1;
        slice.failures += u32::from(failed);
    }

    fn is_reached(&self, now: Instant) -> bool {
        let oldest = (self.number(now) + 1).saturating_sub(SLICES as u128);
        let recent = self.slices.iter().filter(|slice| slice.number >= oldest);
        let (calls, failures) = recent.fold((0_u64, 0_u64), |(calls, failures), slice| {
            (
                calls + u64::from(slice.calls),
                failures + u64::from(slice.failures),
            )
        });

        calls >= u64::from(self.config.min_calls)
            && failures as f64 / calls as f64 >= self.config.failure_rate
    }

    fn number(&self, now: Instant) -> u128 {
        now.saturating_duration_since(self.began).as_nanos() / self.slice.as_nanos()
    }
}

impl FailurePolicy for FailureRate {
    fn record_success(&mut self) {
        self.record(false, Instant::now());
    }

    fn mark_dead_on_failure(&mut self) -> Option<Duration> {
        let now = Instant::now();
        self.record(true, now);
        self.is_reached(now).then_some(self.config.cooldown)
    }

    fn revived(&mut self) {
        *self = Self::new(self.config, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: BreakerConfig = BreakerConfig {
        failure_rate: 0.5,
        min_calls: 10,
        window: Duration::from_secs(30),
        cooldown: Duration::from_secs(30),
    };

    fn after(calls: impl IntoIterator<Item = (Duration, bool)>, now: Duration) -> bool {
        let began = Instant::now();
        let mut rate = FailureRate::new(CONFIG, began);
        for (at, failed) in calls {
            rate.record(failed, began + at);
        }
        rate.is_reached(began + now)
    }

    #[test]
    fn as_many_failures_as_min_calls_reach_it_at_once_and_one_fewer_do_not() {
        let burst = |count| std::iter::repeat_n((Duration::ZERO, true), count);

        assert!(after(burst(10), Duration::ZERO));
        assert!(!after(burst(9), Duration::ZERO));
    }

    #[test]
    fn half_of_the_calls_reach_a_rate_of_a_half_and_49_of_100_do_not() {
        let share = |failures| (0..100).map(move |call| (Duration::from_millis(call), call < failures));

        assert!(after(share(50), Duration::from_secs(1)));
        assert!(!after(share(49), Duration::from_secs(1)));
    }

    #[test]
    fn a_failure_counts_for_nine_tenths_of_the_window_and_not_for_longer_than_the_window() {
        let failures = std::iter::repeat_n((Duration::ZERO, true), 10);

        assert!(after(failures.clone(), Duration::from_millis(26_999)));
        assert!(!after(failures.clone(), Duration::from_millis(30_000)));
        assert!(!after(failures, Duration::from_secs(300)));
    }
}
