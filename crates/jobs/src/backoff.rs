use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Attempt, Span};

/// How often a job is tried, and how long it waits in between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryPolicy {
    /// Attempts before the job becomes a dead letter; at least 1.
    pub max_attempts: u32,
    /// The longest wait after the first attempt.
    pub base: Span,
    /// What each wait is multiplied by to get the next; at least 1.
    pub factor: f64,
    /// The longest wait of all.
    pub max: Span,
    /// The share of each wait that is left to chance, from 0 to 1.
    pub jitter: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 12,
            base: Span::from_secs(2),
            factor: 2.0,
            max: Span::from_secs(3600),
            jitter: 0.5,
        }
    }
}

/// Why a retry policy makes no sense.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum InvalidBackoff {
    /// There would be no attempt at all.
    #[error("max_attempts must be at least 1")]
    NoAttempts,
    /// Waits would shrink, or be no number.
    #[error("factor must be a number of at least 1, not {0}")]
    Factor(f64),
    /// The share of chance is no share.
    #[error("jitter must be from 0 to 1, not {0}")]
    Jitter(f64),
    /// The first wait would be longer than the longest.
    #[error("base ({base}) must not be longer than max ({max})")]
    BaseOverMax {
        /// The first wait.
        base: Span,
        /// The longest wait.
        max: Span,
    },
}

impl RetryPolicy {
    /// Checks that the numbers make sense together.
    ///
    /// # Errors
    ///
    /// Names the first number that does not.
    pub fn validate(&self) -> Result<(), InvalidBackoff> {
        if self.max_attempts == 0 {
            return Err(InvalidBackoff::NoAttempts);
        }
        if !(self.factor.is_finite() && self.factor >= 1.0) {
            return Err(InvalidBackoff::Factor(self.factor));
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err(InvalidBackoff::Jitter(self.jitter));
        }
        if self.base > self.max {
            return Err(InvalidBackoff::BaseOverMax {
                base: self.base,
                max: self.max,
            });
        }
        Ok(())
    }

    /// Returns how long to wait after `attempt` has failed.
    ///
    /// `chance` is drawn by the caller from `0.0..1.0`. The share `jitter` of the wait is random, so a
    /// thousand jobs that failed together do not come back together.
    #[must_use]
    pub fn wait(&self, attempt: Attempt, chance: f64) -> Duration {
        let exponent = i32::try_from(attempt.get() - 1).unwrap_or(i32::MAX);
        let grown = self.base.0.as_secs_f64() * self.factor.powi(exponent);
        let longest = grown.min(self.max.0.as_secs_f64());
        let fixed = longest * (1.0 - self.jitter);
        let wait = fixed + longest * self.jitter * chance.clamp(0.0, 1.0);
        // As a float the longest span there is rounds up, past what a duration holds.
        Duration::try_from_secs_f64(wait).unwrap_or(self.max.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nth(attempt: u32) -> Attempt {
        Attempt::new(attempt).unwrap()
    }

    #[test]
    fn doubles_after_each_failure_until_the_longest_wait() {
        let policy = RetryPolicy::default();

        let schedule: Vec<u64> = (1..=13)
            .map(|attempt| policy.wait(nth(attempt), 1.0).as_secs())
            .collect();

        assert_eq!(
            schedule,
            [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]
        );
    }

    #[test]
    fn chance_takes_off_at_most_the_share_of_jitter() {
        let policy = RetryPolicy::default();

        assert_eq!(policy.wait(nth(3), 0.0), Duration::from_secs(4));
        assert_eq!(policy.wait(nth(3), 1.0), Duration::from_secs(8));
    }

    #[test]
    fn no_attempt_overflows_the_wait() {
        let policy = RetryPolicy {
            factor: 1e300,
            ..RetryPolicy::default()
        };

        assert_eq!(policy.wait(nth(u32::MAX), 1.0), policy.max.0);
    }

    #[test]
    fn the_longest_span_there_is_can_be_waited_for() {
        let policy = RetryPolicy {
            base: Span::from_secs(u64::MAX),
            max: Span::from_secs(u64::MAX),
            ..RetryPolicy::default()
        };

        assert_eq!(policy.validate(), Ok(()));
        assert_eq!(policy.wait(nth(1), 1.0), policy.max.0);
    }

    #[test]
    fn a_policy_at_its_limits_is_valid_and_one_past_them_is_not() {
        let at = RetryPolicy {
            max_attempts: 1,
            factor: 1.0,
            jitter: 1.0,
            base: Span::from_secs(3600),
            ..RetryPolicy::default()
        };
        assert_eq!(at.validate(), Ok(()));

        assert_eq!(
            RetryPolicy {
                max_attempts: 0,
                ..at.clone()
            }
            .validate(),
            Err(InvalidBackoff::NoAttempts)
        );
        assert_eq!(
            RetryPolicy {
                factor: 0.99,
                ..at.clone()
            }
            .validate(),
            Err(InvalidBackoff::Factor(0.99))
        );
        assert_eq!(
            RetryPolicy {
                jitter: 1.01,
                ..at.clone()
            }
            .validate(),
            Err(InvalidBackoff::Jitter(1.01))
        );
        assert!(
            RetryPolicy {
                factor: f64::NAN,
                ..at.clone()
            }
            .validate()
            .is_err()
        );
        let past = Span::from_secs(3601);
        assert_eq!(
            RetryPolicy {
                base: past,
                ..at.clone()
            }
            .validate(),
            Err(InvalidBackoff::BaseOverMax {
                base: past,
                max: at.max
            })
        );
    }
}
