use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use posthaste_jobs::JobId;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::engine::{Ending, Grant, Promoted, STEP, Verdict};
use crate::{Depth, Entry};

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The engine in this process. Its memory is a map; its clock never goes back.
pub(crate) struct Local {
    epoch: String,
    lease: Duration,
    state: Mutex<State>,
    wake: Arc<Notify>,
    /// Told when something is due sooner than the keeper knows.
    sooner: Arc<Notify>,
}

#[derive(Default)]
struct State {
    places: HashMap<JobId, Place>,
    ready: BTreeMap<i64, JobId>,
    scheduled: BTreeMap<(Instant, i64), JobId>,
    grants: BTreeMap<u64, Lease>,
    /// Counts places at the end of the line up, and those at its head down.
    sequence: i64,
    last_grant: u64,
}

/// Where an id is.
#[derive(Clone, Copy)]
enum Place {
    Ready,
    Scheduled,
    /// Under this grant.
    Leased(u64),
}

struct Lease {
    deadline: Instant,
    jobs: BTreeSet<JobId>,
}

impl Local {
    /// Makes an empty queue. `epoch` names it, and is drawn anew for each.
    pub(crate) fn new(epoch: String, lease: Duration, wake: Arc<Notify>, sooner: Arc<Notify>) -> Self {
        Self {
            epoch,
            lease,
            state: Mutex::default(),
            wake,
            sooner,
        }
    }

    pub(crate) fn epoch(&self) -> String {
        self.epoch.clone()
    }

    pub(crate) fn push(&self, entries: &[Entry]) -> Vec<JobId> {
        let now = Instant::now();
        let mut state = self.lock();
        let mut leased = Vec::new();
        for Entry { job, wait, .. } in entries {
            match state.places.get(job) {
                Some(Place::Leased(_)) => leased.push(*job),
                Some(_) => {}
                None => state.add(*job, now, *wait),
            }
        }
        self.tell(entries.iter().map(|entry| entry.wait));
        leased
    }

    pub(crate) fn depth(&self) -> Depth {
        let state = self.lock();
        let (ready, scheduled) = (state.ready.len(), state.scheduled.len());
        Depth {
            ready: ready as u64,
            scheduled: scheduled as u64,
            leased: (state.places.len() - ready - scheduled) as u64,
        }
    }

    pub(crate) fn fetch(&self, at_most: usize) -> Grant {
        let mut state = self.lock();
        let number = state.last_grant + 1;
        let mut jobs = Vec::with_capacity(at_most.min(state.ready.len()));
        while jobs.len() < at_most
            && let Some((_, job)) = state.ready.pop_first()
        {
            state.places.insert(job, Place::Leased(number));
            jobs.push(job);
        }
        if !jobs.is_empty() {
            state.last_grant = number;
            let lease = Lease {
                deadline: Instant::now() + self.lease,
                jobs: jobs.iter().copied().collect(),
            };
            state.grants.insert(number, lease);
        }
        Grant { number, jobs }
    }

    pub(crate) fn acknowledge(&self, endings: &[Ending]) {
        let now = Instant::now();
        let mut state = self.lock();
        let mut waits = Vec::new();
        // Backwards, so that of several that go back to the head of the line the first comes to stand first.
        for ending in endings.iter().rev() {
            match state.places.get(&ending.job) {
                Some(Place::Leased(grant)) if *grant == ending.grant => {
                    state.release(ending.job, ending.grant);
                }
                None => {}
                Some(_) => continue,
            }
            match ending.verdict {
                Verdict::Done => {}
                Verdict::Again(wait) => {
                    state.add(ending.job, now, wait);
                    waits.push(wait);
                }
                Verdict::Back => {
                    state.put_first(ending.job);
                    waits.push(Duration::ZERO);
                }
            }
        }
        self.tell(waits);
    }

    pub(crate) fn promote(&self) -> Promoted {
        let now = Instant::now();
        let mut state = self.lock();
        let mut moved = 0;
        while moved < STEP
            && let Some(first) = state.scheduled.first_entry()
            && first.key().0 <= now
        {
            let job = first.remove();
            state.put_last(job);
            moved += 1;
        }
        if moved > 0 {
            self.wake.notify_waiters();
        }
        Promoted {
            moved,
            next: state
                .scheduled
                .first_key_value()
                .map(|((due, _), _)| due.saturating_duration_since(now)),
        }
    }

    pub(crate) fn recover(&self) {
        let now = Instant::now();
        let mut state = self.lock();
        let over: Vec<u64> = state
            .grants
            .iter()
            .filter(|(_, lease)| lease.deadline <= now)
            .map(|(grant, _)| *grant)
            .collect();
        for grant in over.iter().rev() {
            let jobs = state
                .grants
                .remove(grant)
                .map(|lease| lease.jobs)
                .unwrap_or_default();
            for job in jobs.into_iter().rev() {
                state.put_first(job);
            }
        }
        if !over.is_empty() {
            self.wake.notify_waiters();
        }
    }

    pub(crate) fn renew(&self, grants: &[u64]) -> Vec<u64> {
        let deadline = Instant::now() + self.lease;
        let mut state = self.lock();
        let mut gone = Vec::new();
        for grant in grants {
            match state.grants.get_mut(grant) {
                Some(lease) => lease.deadline = deadline,
                None => gone.push(*grant),
            }
        }
        gone
    }

    /// Wakes whoever waits for work, or for work to become due.
    fn tell(&self, waits: impl IntoIterator<Item = Duration>) {
        let (mut now, mut later) = (false, false);
        for wait in waits {
            if wait.is_zero() { now = true } else { later = true }
        }
        if now {
            self.wake.notify_waiters();
        }
        if later {
            self.sooner.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, job: JobId, now: Instant, wait: Duration) {
        if wait.is_zero() {
            self.put_last(job);
        } else {
            self.sequence += 1;
            // A wait beyond what the clock can name is one for ever; a century stands in for it.
            let due = now.checked_add(wait).unwrap_or_else(|| now + CENTURY);
            self.scheduled.insert((due, self.sequence), job);
            self.places.insert(job, Place::Scheduled);
        }
    }

    fn put_last(&mut self, job: JobId) {
        self.sequence += 1;
        self.put(job, self.sequence);
    }

    fn put_first(&mut self, job: JobId) {
        self.sequence += 1;
        self.put(job, -self.sequence);
    }

    fn put(&mut self, job: JobId, place: i64) {
        self.ready.insert(place, job);
        self.places.insert(job, Place::Ready);
    }

    fn release(&mut self, job: JobId, grant: u64) {
        self.places.remove(&job);
        if let Some(lease) = self.grants.get_mut(&grant) {
            lease.jobs.remove(&job);
            if lease.jobs.is_empty() {
                self.grants.remove(&grant);
            }
        }
    }
}
