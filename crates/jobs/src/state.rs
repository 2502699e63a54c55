use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Where a job stands. `docs/job-lifecycle.md` draws who moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Due, waiting for a worker.
    Queued,
    /// Not due yet.
    Scheduled,
    /// Claimed by a worker.
    Running,
    /// Failed, waiting for its next attempt.
    Retrying,
    /// Held back without spending an attempt: its breaker is open or its endpoint is busy.
    Parked,
    /// Had its effect.
    Succeeded,
    /// A dead letter: we stopped trying.
    Dead,
    /// Called off before it ran.
    Cancelled,
    /// A dead letter that an operator closed.
    Discarded,
}

impl State {
    /// Every state there is.
    pub const ALL: [Self; 9] = [
        Self::Queued,
        Self::Scheduled,
        Self::Running,
        Self::Retrying,
        Self::Parked,
        Self::Succeeded,
        Self::Dead,
        Self::Cancelled,
        Self::Discarded,
    ];

    /// Returns the stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Scheduled => "scheduled",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Parked => "parked",
            Self::Succeeded => "succeeded",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::Discarded => "discarded",
        }
    }

    /// Tells whether a worker still owes this job something.
    #[must_use]
    pub const fn is_unfinished(self) -> bool {
        match self {
            Self::Queued | Self::Scheduled | Self::Running | Self::Retrying | Self::Parked => true,
            Self::Succeeded | Self::Dead | Self::Cancelled | Self::Discarded => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The text names no state.
#[derive(Debug, thiserror::Error)]
#[error("no state is called {name:?}")]
pub struct UnknownState {
    /// What was asked for.
    pub name: String,
}

impl FromStr for State {
    type Err = UnknownState;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == name)
            .ok_or_else(|| UnknownState {
                name: name.to_owned(),
            })
    }
}
