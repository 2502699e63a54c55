use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How urgent a job is among those of its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Before the others.
    High,
    /// What a job has unless somebody says otherwise.
    #[default]
    Normal,
    /// After the others.
    Low,
}

impl Priority {
    /// Every priority there is, most urgent first.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// Returns the stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Priority {
    type Err = UnknownPriority;

    fn from_str(text: &str) -> Result<Self, UnknownPriority> {
        Self::ALL
            .into_iter()
            .find(|priority| priority.as_str() == text)
            .ok_or_else(|| UnknownPriority(text.to_owned()))
    }
}

/// No priority has this name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no priority is called {0:?}")]
pub struct UnknownPriority(pub String);

/// In which line of its queue a due job waits.
///
/// Lines take turns: of any 15 turns high has 8, normal 4, retries 2 and low 1. The turn of an empty line goes to the
/// first in that order that is not. So no line starves, and none waits for another that is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Never tried, [`Priority::High`].
    High,
    /// Never tried, [`Priority::Normal`].
    Normal,
    /// Tried or parked before, of any priority: a flood of late retries must not hold up what has not been tried at all.
    Retry,
    /// Never tried, [`Priority::Low`].
    Low,
}

impl Lane {
    /// Every lane there is, in the order in which an unused turn is passed on.
    pub const ALL: [Self; 4] = [Self::High, Self::Normal, Self::Retry, Self::Low];

    /// Returns the lane of a job; `tried` says whether an attempt was made, or put off, since it was accepted or replayed.
    #[must_use]
    pub const fn of(priority: Priority, tried: bool) -> Self {
        match (tried, priority) {
            (true, _) => Self::Retry,
            (false, Priority::High) => Self::High,
            (false, Priority::Normal) => Self::Normal,
            (false, Priority::Low) => Self::Low,
        }
    }

    /// Returns how many of 15 turns are this lane's.
    #[must_use]
    pub const fn turns(self) -> usize {
        match self {
            Self::High => 8,
            Self::Normal => 4,
            Self::Retry => 2,
            Self::Low => 1,
        }
    }

    /// Returns its name in keys and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Retry => "retry",
            Self::Low => "low",
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_read_as_it_is_written_and_nothing_else_is() {
        for priority in Priority::ALL {
            assert_eq!(priority.as_str().parse(), Ok(priority));
        }
        assert_eq!(
            "High".parse::<Priority>(),
            Err(UnknownPriority("High".to_owned()))
        );
    }

    #[test]
    fn what_was_tried_waits_with_the_retries_whatever_its_priority() {
        for priority in Priority::ALL {
            assert_eq!(Lane::of(priority, true), Lane::Retry);
            assert_eq!(Lane::of(priority, false).as_str(), priority.as_str());
        }
    }

    #[test]
    fn of_fifteen_turns_every_lane_has_some() {
        let turns = Lane::ALL.map(Lane::turns);

        assert_eq!(turns.iter().sum::<usize>(), 15);
        assert!(turns.iter().all(|turns| *turns > 0));
    }
}
