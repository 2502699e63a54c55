use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use posthaste_jobs::{JobId, Lane};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::engine::{Ending, Grant, Promoted, STEP, Verdict};
use crate::turns::{ROUND, share};
use crate::{Entry, Survey};

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
    lanes: [BTreeMap<i64, Waiting>; 4],
    scheduled: BTreeMap<(Instant, i64), (JobId, Lane)>,
    grants: BTreeMap<u64, Lease>,
    /// Counts places at the end of the line up, and those at its head down.
    sequence: i64,
    last_grant: u64,
    /// Turns that the lanes have taken.
    turn: usize,
    fetched_at: Option<Instant>,
    paused: bool,
}

/// An id in line.
struct Waiting {
    job: JobId,
    since: Instant,
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
        for Entry { job, wait, lane } in entries {
            match state.places.get(job) {
                Some(Place::Leased(_)) => leased.push(*job),
                Some(_) => {}
                None => state.add(*job, *lane, now, *wait),
            }
        }
        self.tell(entries.iter().map(|entry| entry.wait));
        leased
    }

    pub(crate) fn survey(&self) -> Survey {
        let now = Instant::now();
        let state = self.lock();
        let lanes = state.waiting();
        let (ready, scheduled): (usize, _) = (lanes.iter().sum(), state.scheduled.len());
        let in_line = state
            .lanes
            .iter()
            .filter_map(|lane| lane.first_key_value())
            .map(|(_, first)| first.since);
        let overdue = state.scheduled.first_key_value().map(|((due, _), _)| *due);
        let oldest = in_line.chain(overdue.filter(|due| *due <= now)).min();
        Survey {
            lanes: lanes.map(|waiting| waiting as u64),
            scheduled: scheduled as u64,
            leased: (state.places.len() - ready - scheduled) as u64,
            oldest: oldest.map(|since| now - since),
            fetched: state.fetched_at.map(|at| now - at),
            paused: state.paused,
            held: state.grants.values().any(|lease| lease.deadline >= now),
        }
    }

    pub(crate) fn set_paused(&self, paused: bool) {
        self.lock().paused = paused;
        if !paused {
            self.wake.notify_waiters();
        }
    }

    pub(crate) fn fetch(&self, at_most: usize) -> Grant {
        let mut state = self.lock();
        let number = state.last_grant + 1;
        let jobs = state.take(at_most, number);
        if !jobs.is_empty() {
            let now = Instant::now();
            state.last_grant = number;
            state.fetched_at = Some(now);
            let lease = Lease {
                deadline: now + self.lease,
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
                    state.add(ending.job, Lane::Retry, now, wait);
                    waits.push(wait);
                }
                Verdict::Back => {
                    state.put_first(ending.job, now);
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
            let (job, lane) = first.remove();
            state.put_last(job, lane, now);
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
                state.put_first(job, now);
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
    /// Says how many ids are in each line.
    fn waiting(&self) -> [usize; 4] {
        std::array::from_fn(|lane| self.lanes[lane].len())
    }

    /// Takes ids out of their lines, under the grant `number`.
    fn take(&mut self, at_most: usize, number: u64) -> Vec<JobId> {
        let waiting = self.waiting();
        let count = at_most.min(waiting.iter().sum());
        if self.paused || count == 0 {
            return Vec::new();
        }
        let mut jobs = Vec::with_capacity(count);
        for (lane, turns) in self.lanes.iter_mut().zip(share(self.turn, count, waiting)) {
            for _ in 0..turns {
                jobs.extend(lane.pop_first().map(|(_, first)| first.job));
            }
        }
        self.turn = (self.turn + count) % ROUND;
        for job in &jobs {
            self.places.insert(*job, Place::Leased(number));
        }
        jobs
    }

    fn add(&mut self, job: JobId, lane: Lane, now: Instant, wait: Duration) {
        if wait.is_zero() {
            self.put_last(job, lane, now);
        } else {
            self.sequence += 1;
            // A wait beyond what the clock can name is one for ever; a century stands in for it.
            let due = now.checked_add(wait).unwrap_or_else(|| now + CENTURY);
            self.scheduled.insert((due, self.sequence), (job, lane));
            self.places.insert(job, Place::Scheduled);
        }
    }

    fn put_last(&mut self, job: JobId, lane: Lane, now: Instant) {
        self.sequence += 1;
        self.put(job, lane, self.sequence, now);
    }

    /// Puts an id that has had its turn before all others.
    fn put_first(&mut self, job: JobId, now: Instant) {
        self.sequence += 1;
        self.put(job, Lane::ALL[0], -self.sequence, now);
    }

    fn put(&mut self, job: JobId, lane: Lane, place: i64, since: Instant) {
        self.lanes[lane as usize].insert(place, Waiting { job, since });
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
