//! How many calls to one endpoint are under way at once.
//!
//! Who finds no room waits in place, holding its worker, only where a turn is near: the wait is
//! expected to last no longer than [`PATIENCE`], and is given up after it. All others are sent away
//! at once with the time to come back. So a quick endpoint with a rush of calls sends nobody away,
//! and one that hangs holds few more than its own calls.
//!
//! The expected wait is each waiter's share of a call's duration: `(waiters ahead + 1) × duration /
//! limit`, where duration is the moving average of the calls that ended or the mean age of those under
//! way, whichever is longer. The age makes hanging show before anything has ended; the mean of it,
//! rather than the oldest, keeps one stuck call from turning away the work of all the other slots.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

/// The longest wait in place.
const PATIENCE: Duration = Duration::from_millis(500);

/// The shortest and the longest time that somebody is sent away for.
const AWAY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// The weight of one call in the moving average of durations is one in so many.
const MEMORY: u32 = 8;

pub(crate) struct InFlight {
    limit: u32,
    slots: Semaphore,
    load: Mutex<Load>,
}

struct Load {
    /// How many wait in place.
    waiting: u32,
    /// How many calls are under way, and the sum of when they began, counted from `epoch`.
    under_way: u32,
    begun: Duration,
    epoch: Instant,
    /// How long calls last, lately.
    average: Duration,
    /// Those sent away are expected back one after another; this is when the last of them is.
    last_return: Instant,
}

impl InFlight {
    pub(crate) fn new(limit: u32) -> Self {
        let now = Instant::now();
        Self {
            limit,
            slots: Semaphore::new(limit as usize),
            load: Mutex::new(Load {
                waiting: 0,
                under_way: 0,
                begun: Duration::ZERO,
                epoch: now,
                average: Duration::ZERO,
                last_return: now,
            }),
        }
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// Takes a slot, or says when to come back.
    pub(crate) async fn enter(&self) -> Result<Slot<'_>, Duration> {
        if let Ok(permit) = self.slots.try_acquire() {
            return Ok(self.slot(permit));
        }
        let waiter = self.line_up()?;
        let turn = timeout(PATIENCE, self.slots.acquire()).await;
        drop(waiter);

        match turn {
            Ok(Ok(permit)) => Ok(self.slot(permit)),
            _ => Err(self.load().send_away(self.limit, Instant::now())),
        }
    }

    fn slot<'a>(&'a self, permit: SemaphorePermit<'a>) -> Slot<'a> {
        let since = Instant::now();
        let mut load = self.load();
        let begun = since - load.epoch;
        load.under_way += 1;
        load.begun += begun;
        Slot {
            in_flight: self,
            since,
            _permit: permit,
        }
    }

    fn line_up(&self) -> Result<Waiter<'_>, Duration> {
        let now = Instant::now();
        let mut load = self.load();
        if load.expected_wait(self.limit, now) > PATIENCE {
            return Err(load.send_away(self.limit, now));
        }
        load.waiting += 1;
        Ok(Waiter(self))
    }

    fn load(&self) -> MutexGuard<'_, Load> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Load {
    fn expected_wait(&self, limit: u32, now: Instant) -> Duration {
        self.share(limit, now).saturating_mul(self.waiting + 1)
    }

    /// How long it takes, on average, until one more slot is free.
    fn share(&self, limit: u32, now: Instant) -> Duration {
        let ages = ((now - self.epoch) * self.under_way).saturating_sub(self.begun);
        let age = ages.checked_div(self.under_way).unwrap_or_default();
        self.average.max(age) / limit
    }

    /// Gives whoever is sent away a time of its own, behind all who wait and all sent away before.
    fn send_away(&mut self, limit: u32, now: Instant) -> Duration {
        let (shortest, longest) = AWAY;
        let behind_waiting = now + self.expected_wait(limit, now).min(longest);
        let behind_away = self.last_return + self.share(limit, now);
        self.last_return = behind_waiting.max(behind_away).min(now + longest);

        (self.last_return - now).max(shortest)
    }
}

struct Waiter<'a>(&'a InFlight);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.load().waiting -= 1;
    }
}

/// The room for one call, until it is dropped.
pub(crate) struct Slot<'a> {
    in_flight: &'a InFlight,
    since: Instant,
    _permit: SemaphorePermit<'a>,
}

impl Slot<'_> {
    /// Gives it back after a call, whose duration is remembered.
    pub(crate) fn called(self) {
        let mut load = self.in_flight.load();
        load.average = (load.average * (MEMORY - 1) + self.since.elapsed()) / MEMORY;
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut load = self.in_flight.load();
        load.under_way -= 1;
        load.begun = load.begun.saturating_sub(self.since - load.epoch);
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::sleep;

    use super::*;

    const LIMIT: u32 = 32;

    /// What became of one caller, and when.
    type Outcome = (Result<(), Duration>, Duration);

    async fn rush(in_flight: &InFlight, callers: usize, duration: Duration) -> Vec<Outcome> {
        let began = Instant::now();
        join_all((0..callers).map(|_| async {
            let turn = match in_flight.enter().await {
                Ok(slot) => {
                    sleep(duration).await;
                    slot.called();
                    Ok(())
                }
                Err(retry_in) => Err(retry_in),
            };
            (turn, began.elapsed())
        }))
        .await
    }

    fn served(outcomes: &[Outcome]) -> usize {
        outcomes.iter().filter(|(turn, _)| turn.is_ok()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_quick_endpoint_sends_none_of_500_callers_away() {
        let in_flight = InFlight::new(LIMIT);

        let outcomes = rush(&in_flight, 500, Duration::from_millis(10)).await;

        assert_eq!(served(&outcomes), 500);
    }

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_hangs_holds_no_more_than_its_limit_for_a_second() {
        let in_flight = InFlight::new(LIMIT);

        let outcomes = rush(&in_flight, 500, Duration::from_secs(10)).await;

        let held = outcomes
            .iter()
            .filter(|(_, after)| *after > Duration::from_secs(1));
        assert_eq!(held.count(), LIMIT as usize);
        assert_eq!(served(&outcomes), LIMIT as usize);
    }

    #[tokio::test(start_paused = true)]
    async fn once_an_endpoint_has_hung_for_seconds_few_of_those_who_come_are_held_at_all() {
        let in_flight = InFlight::new(LIMIT);
        let hanging = rush(&in_flight, LIMIT as usize, Duration::from_secs(10));
        let later = async {
            sleep(Duration::from_secs(5)).await;
            rush(&in_flight, 500, Duration::from_secs(10)).await
        };

        let (_, outcomes) = tokio::join!(hanging, later);

        let held = outcomes.iter().filter(|(_, after)| !after.is_zero());
        assert!(held.count() <= 4);
        assert_eq!(served(&outcomes), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn those_sent_away_are_spread_over_the_time_that_the_endpoint_needs_for_them() {
        let in_flight = InFlight::new(2);

        let outcomes = rush(&in_flight, 22, Duration::from_secs(1)).await;

        let mut waits: Vec<_> = outcomes.iter().filter_map(|(turn, _)| turn.err()).collect();
        waits.sort_unstable();
        let (first, last) = (waits[0], waits[waits.len() - 1]);
        assert_eq!(waits.len(), 20);
        assert!(
            first >= AWAY.0 && last > Duration::from_secs(4) && last <= AWAY.1,
            "{waits:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_sent_away_for_longer_than_30_seconds_or_shorter_than_250_milliseconds() {
        let in_flight = InFlight::new(1);

        let outcomes = rush(&in_flight, 1_000, Duration::from_secs(60)).await;
        let waits = || outcomes.iter().filter_map(|(turn, _)| turn.err());

        assert!(waits().min() >= Some(AWAY.0));
        assert!(waits().max() == Some(AWAY.1));
    }

    #[tokio::test(start_paused = true)]
    async fn one_stuck_call_does_not_turn_away_the_work_of_the_other_slots() {
        let in_flight = InFlight::new(LIMIT);
        let stuck = in_flight.enter().await.ok().unwrap();
        sleep(Duration::from_secs(10)).await;

        let outcomes = rush(&in_flight, 60, Duration::from_millis(10)).await;

        assert_eq!(served(&outcomes), 60);
        drop(stuck);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_gives_up_leaves_no_trace() {
        let in_flight = InFlight::new(1);
        let slot = in_flight.enter().await.ok().unwrap();

        let gave_up = timeout(Duration::from_millis(1), in_flight.enter()).await;
        drop(slot);

        assert!(gave_up.is_err());
        let load = in_flight.load();
        assert_eq!((load.waiting, load.under_way, load.begun), (0, 0, Duration::ZERO));
        assert_eq!(in_flight.slots.available_permits(), 1);
    }
}
