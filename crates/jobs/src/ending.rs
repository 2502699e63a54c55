use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::RetryPolicy;

/// The number of a try, from 1. A snooze or a crash spends none; a replay starts again at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt(NonZeroU32);

impl Attempt {
    /// The first try.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// Makes the `number`th attempt; there is no 0th.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }

    /// Returns the number, from 1.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a handler says of a try that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may work another time; this try counts.
    Retry {
        /// How long the other side asked us to wait, within bounds.
        after: Option<Duration>,
    },
    /// Nothing was tried; come back after this long, at no cost.
    Snooze(Duration),
    /// It will never work.
    DeadLetter,
}

/// Why a job became a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadReason {
    /// The handler said that it will never work.
    Permanent,
    /// All attempts are spent.
    Exhausted,
    /// It took its worker down with it too often.
    Crashed,
}

impl DeadReason {
    /// Returns the stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::Exhausted => "exhausted",
            Self::Crashed => "crashed",
        }
    }
}

/// How a try ended for its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It had its effect.
    Succeeded,
    /// It is tried again after `wait`.
    Retrying {
        /// How long until then.
        wait: Duration,
    },
    /// It comes back after `wait`, with as many attempts left as before.
    Parked {
        /// How long until then.
        wait: Duration,
    },
    /// It is a dead letter.
    Dead(DeadReason),
}

/// Decides how `attempt` ends: the one place that knows.
///
/// The other side may ask for a longer wait than ours, never for a shorter one. `chance` is drawn by
/// the caller from `0.0..1.0`.
#[must_use]
pub fn end(result: Result<(), Decision>, attempt: Attempt, retry: &RetryPolicy, chance: f64) -> Ending {
    match result {
        Ok(()) => Ending::Succeeded,
        Err(Decision::DeadLetter) => Ending::Dead(DeadReason::Permanent),
        Err(Decision::Snooze(wait)) => Ending::Parked { wait },
        Err(Decision::Retry { .. }) if attempt.get() >= retry.max_attempts => {
            Ending::Dead(DeadReason::Exhausted)
        }
        Err(Decision::Retry { after }) => Ending::Retrying {
            wait: retry.wait(attempt, chance).max(after.unwrap_or_default()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: Result<(), Decision> = Err(Decision::Retry { after: None });

    fn last(retry: &RetryPolicy) -> Attempt {
        Attempt::new(retry.max_attempts).unwrap()
    }

    #[test]
    fn the_last_attempt_that_fails_is_a_dead_letter_and_the_one_before_is_not() {
        let retry = RetryPolicy::default();
        let before = Attempt::new(retry.max_attempts - 1).unwrap();

        assert_eq!(
            end(RETRY, last(&retry), &retry, 0.0),
            Ending::Dead(DeadReason::Exhausted)
        );
        assert!(matches!(end(RETRY, before, &retry, 0.0), Ending::Retrying { .. }));
    }

    #[test]
    fn a_snooze_on_the_last_attempt_is_no_dead_letter() {
        let retry = RetryPolicy::default();
        let wait = Duration::from_secs(30);

        assert_eq!(
            end(Err(Decision::Snooze(wait)), last(&retry), &retry, 0.0),
            Ending::Parked { wait }
        );
    }

    #[test]
    fn the_other_side_may_ask_for_a_longer_wait_but_not_for_a_shorter_one() {
        let retry = RetryPolicy::default();
        let asked = |secs| {
            Err(Decision::Retry {
                after: Some(Duration::from_secs(secs)),
            })
        };

        let longer = end(asked(600), Attempt::FIRST, &retry, 1.0);
        let shorter = end(asked(0), Attempt::FIRST, &retry, 1.0);

        assert_eq!(
            longer,
            Ending::Retrying {
                wait: Duration::from_secs(600)
            }
        );
        assert_eq!(
            shorter,
            Ending::Retrying {
                wait: Duration::from_secs(2)
            }
        );
    }

    #[test]
    fn what_will_never_work_is_a_dead_letter_at_once() {
        let ending = end(
            Err(Decision::DeadLetter),
            Attempt::FIRST,
            &RetryPolicy::default(),
            0.0,
        );

        assert_eq!(ending, Ending::Dead(DeadReason::Permanent));
    }
}
