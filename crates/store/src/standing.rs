use std::collections::BTreeMap;

use posthaste_jobs::{State, Timestamp};

/// How a queue stands, as the ledger knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Standing {
    /// Since when nothing of it is handed out; `None`: it is.
    pub paused_at: Option<Timestamp>,
    /// Unfinished jobs and dead letters, by state.
    pub jobs: BTreeMap<&'static str, u64>,
    /// How long the job that has been due longest has waited.
    pub oldest_due_ms: Option<u64>,
}

/// State, how many, and for how long the first of them has been due, in milliseconds.
pub(crate) type StandingColumns = (String, i64, i64);

impl Standing {
    pub(crate) fn read(paused_at: Option<i64>, rows: Vec<StandingColumns>) -> Self {
        let mut standing = Self {
            paused_at: paused_at.map(Timestamp::from_millis),
            ..Self::default()
        };
        for (state, count, due_for) in rows {
            let Ok(state) = state.parse::<State>() else {
                continue;
            };
            standing
                .jobs
                .insert(state.as_str(), u64::try_from(count).unwrap_or(0));
            let waits = !matches!(state, State::Running | State::Dead);
            if waits {
                standing.oldest_due_ms = standing.oldest_due_ms.max(u64::try_from(due_for).ok());
            }
        }
        standing
    }
}
