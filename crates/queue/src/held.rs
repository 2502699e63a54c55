use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use posthaste_jobs::JobId;

use crate::engine::{Ending, Grant, Verdict};

/// What this process holds: ids that it fetched and has not ended, and endings that have not been delivered.
///
/// Bounded by what is fetched: an ending takes the place of its lease, and nothing is fetched while many endings wait.
#[derive(Default)]
pub(crate) struct Held {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    leases: HashMap<JobId, Lease>,
    outbox: VecDeque<Ending>,
}

struct Lease {
    grant: u64,
    /// Which backend fetched it.
    holder: u64,
}

impl Held {
    /// Notes that `holder` has fetched `grant`.
    pub(crate) fn take(&self, grant: &Grant, holder: u64) {
        let mut state = self.lock();
        for job in &grant.jobs {
            let lease = Lease {
                grant: grant.number,
                holder,
            };
            state.leases.insert(*job, lease);
        }
    }

    /// Notes how the lease of `job` under `grant` ends; it waits for delivery. A lease that was lost is ended all the
    /// same: the engine has the last word.
    pub(crate) fn end(&self, job: JobId, grant: u64, verdict: Verdict) {
        let mut state = self.lock();
        if state.leases.get(&job).is_some_and(|lease| lease.grant == grant) {
            state.leases.remove(&job);
        }
        state.outbox.push_back(Ending { job, grant, verdict });
    }

    /// Returns the grant under which `job` is held; grant 0 is nobody's.
    pub(crate) fn grant_of(&self, job: JobId) -> u64 {
        self.lock().leases.get(&job).map_or(0, |lease| lease.grant)
    }

    /// Gives back all that `holder` has not ended, and says how many.
    pub(crate) fn abandon(&self, holder: u64) -> usize {
        let mut state = self.lock();
        let State { leases, outbox } = &mut *state;
        let before = outbox.len();
        outbox.extend(
            leases
                .extract_if(|_, lease| lease.holder == holder)
                .map(|(job, lease)| Ending {
                    job,
                    grant: lease.grant,
                    verdict: Verdict::Back,
                }),
        );
        outbox.len() - before
    }

    /// Returns the grants whose leases must not run out.
    pub(crate) fn grants(&self) -> Vec<u64> {
        let state = self.lock();
        let held = state.leases.values().map(|lease| lease.grant);
        let ending = state.outbox.iter().map(|ending| ending.grant);
        let mut grants: BTreeSet<u64> = held.chain(ending).collect();
        grants.remove(&0);
        grants.into_iter().collect()
    }

    /// Forgets what was held under grants that are gone, and says how many ids that were.
    pub(crate) fn lose(&self, grants: &[u64]) -> usize {
        let gone: BTreeSet<u64> = grants.iter().copied().collect();
        let mut state = self.lock();
        let before = state.leases.len();
        state.leases.retain(|_, lease| !gone.contains(&lease.grant));
        before - state.leases.len()
    }

    /// Returns the first endings that wait for delivery, oldest first.
    pub(crate) fn undelivered(&self, at_most: usize) -> Vec<Ending> {
        self.lock().outbox.iter().take(at_most).copied().collect()
    }

    /// Says how many endings wait for delivery.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().outbox.len()
    }

    /// Forgets the first `count` endings: they have arrived. Only one caller at a time delivers.
    pub(crate) fn delivered(&self, count: usize) {
        self.lock().outbox.drain(..count);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use posthaste_jobs::Timestamp;

    use super::*;

    fn job(number: u128) -> JobId {
        JobId::new(Timestamp::from_millis(0), number)
    }

    fn grant(number: u64, jobs: &[u128]) -> Grant {
        Grant {
            number,
            jobs: jobs.iter().copied().map(job).collect(),
        }
    }

    #[test]
    fn an_ending_stays_until_it_is_delivered_and_its_grant_is_renewed_meanwhile() {
        let held = Held::default();
        held.take(&grant(7, &[1]), 0);
        held.end(job(1), 7, Verdict::Done);

        assert_eq!(held.undelivered(10).len(), 1);
        assert_eq!(held.undelivered(10).len(), 1);
        assert_eq!(held.grants(), [7]);

        held.delivered(1);
        assert_eq!(held.waiting(), 0);
        assert!(held.grants().is_empty());
    }

    #[test]
    fn a_holder_that_goes_gives_back_its_own_and_nothing_else() {
        let held = Held::default();
        held.take(&grant(1, &[1, 2]), 1);
        held.take(&grant(2, &[3]), 2);
        held.end(job(1), 1, Verdict::Done);

        assert_eq!(held.abandon(1), 1);

        let verdicts: Vec<_> = held.undelivered(10).iter().map(|e| (e.job, e.verdict)).collect();
        assert_eq!(verdicts, [(job(1), Verdict::Done), (job(2), Verdict::Back)]);
    }

    #[test]
    fn a_late_ending_does_not_end_the_lease_that_came_after_it() {
        let held = Held::default();
        held.take(&grant(5, &[1]), 0);

        assert_eq!(held.lose(&[4]), 0);
        assert_eq!(held.lose(&[5]), 1);
        held.take(&grant(6, &[1]), 0);
        held.end(job(1), 5, Verdict::Done);

        assert_eq!(held.undelivered(1)[0].grant, 5);
        assert_eq!(held.grant_of(job(1)), 6);
    }
}
