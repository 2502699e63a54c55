use std::time::Duration;

use crate::Depth;

/// What a queue holds, and whether anybody takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Due, waiting, in the order of [`Lane::ALL`](posthaste_jobs::Lane::ALL).
    pub lanes: [u64; 4],
    /// Not due yet.
    pub scheduled: u64,
    /// Fetched, not acknowledged.
    pub leased: u64,
    /// How long the one that has been due longest has waited.
    pub oldest: Option<Duration>,
    /// How long ago somebody last took something.
    pub fetched: Option<Duration>,
    /// Whether nothing is handed out, because an operator said so.
    pub paused: bool,
    /// Whether somebody holds some of it under a lease that has not run out: it may be that all are busy.
    pub held: bool,
}

/// How long something may be due, and nobody take it, until that is no coincidence.
const STALL: Duration = Duration::from_secs(30);

impl Survey {
    /// Tells for how long jobs have been due that nobody takes, although nobody is busy either; `None` if that is not so,
    /// or not for 30 s, or an operator has paused the queue.
    #[must_use]
    pub fn stalled(&self) -> Option<Duration> {
        let untouched = self.fetched.is_none_or(|ago| ago >= STALL);
        self.oldest
            .filter(|due| *due >= STALL && untouched && !self.held && !self.paused)
    }
}

impl From<Survey> for Depth {
    fn from(survey: Survey) -> Self {
        Self {
            ready: survey.lanes.iter().sum(),
            scheduled: survey.scheduled,
            leased: survey.leased,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUST_UNDER: Duration = Duration::from_millis(29_999);

    fn stalled() -> Survey {
        Survey {
            oldest: Some(STALL),
            fetched: Some(STALL),
            ..Survey::default()
        }
    }

    #[test]
    fn jobs_that_are_due_for_30_s_and_that_nobody_takes_are_a_stall() {
        assert_eq!(stalled().stalled(), Some(STALL));
        let never_fetched = Survey {
            fetched: None,
            ..stalled()
        };
        assert_eq!(never_fetched.stalled(), Some(STALL));
    }

    #[test]
    fn a_queue_is_not_stalled_while_it_is_young_taken_from_busy_or_paused() {
        for survey in [
            Survey::default(),
            Survey {
                oldest: Some(JUST_UNDER),
                ..stalled()
            },
            Survey {
                fetched: Some(JUST_UNDER),
                ..stalled()
            },
            Survey {
                held: true,
                ..stalled()
            },
            Survey {
                paused: true,
                ..stalled()
            },
        ] {
            assert_eq!(survey.stalled(), None, "{survey:?}");
        }
    }
}
