use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{error, info, warn};

use super::link::TIMEOUT;
use crate::QueueError;

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const SAY_AGAIN: Duration = Duration::from_secs(30);

/// Whether the server is there, as far as is known, and when it is to be asked again if it is not.
///
/// Shared by all connections of a queue, so that an outage is one outage: one log line when it starts, one when it ends.
pub(crate) struct Health {
    away: AtomicBool,
    state: Mutex<State>,
    wake: Arc<Notify>,
}

#[derive(Default)]
struct State {
    outage: Option<Outage>,
    refusal_told: Option<Instant>,
}

struct Outage {
    since: Instant,
    failures: u32,
    retry_at: Instant,
    reason: Arc<str>,
    /// Somebody was let through, and has not come back yet.
    probing: bool,
}

impl Health {
    /// `wake` is told when the server is back: what was pushed meanwhile woke nobody.
    pub(crate) fn new(wake: Arc<Notify>) -> Self {
        Self {
            away: AtomicBool::new(false),
            state: Mutex::default(),
            wake,
        }
    }

    /// Says no while the server is away, but for one caller each time it may be asked again.
    pub(crate) fn may_ask(&self, now: Instant) -> Result<(), QueueError> {
        if !self.away.load(Ordering::Acquire) {
            return Ok(());
        }
        match &mut self.lock().outage {
            Some(outage) if now < outage.retry_at => Err(QueueError::Away {
                retry_in: outage.retry_at - now,
                reason: Arc::clone(&outage.reason),
            }),
            Some(outage) => {
                outage.probing = true;
                outage.retry_at = now + TIMEOUT;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Notes that the server could not serve. `chance` is drawn from `0.0..1.0`.
    pub(crate) fn failed(&self, error: &QueueError, now: Instant, chance: f64) {
        let reason: Arc<str> = error.to_string().into();
        let mut state = self.lock();
        match &mut state.outage {
            Some(outage) if outage.probing => {
                outage.probing = false;
                outage.failures = outage.failures.saturating_add(1);
                outage.retry_at = now + wait(outage.failures, chance);
                if outage.reason != reason {
                    // What a person has to mend may show only after what has passed by itself.
                    if error.is_mistake() {
                        tell(error);
                    }
                    outage.reason = reason;
                }
            }
            // Another call that was under way when the outage began.
            Some(_) => {}
            None => {
                tell(error);
                state.outage = Some(Outage {
                    since: now,
                    failures: 1,
                    retry_at: now + wait(1, chance),
                    reason,
                    probing: false,
                });
            }
        }
        self.away.store(true, Ordering::Release);
    }

    /// Notes that the server refused, which is no outage.
    pub(crate) fn refused(&self, error: &QueueError, now: Instant) {
        let mut state = self.lock();
        if state.refusal_told.is_none_or(|told| now - told >= SAY_AGAIN) {
            let error: &(dyn std::error::Error + 'static) = error;
            warn!(
                error,
                "redis refuses what the queue asks; hint: look at its memory, its rights and its keys"
            );
            state.refusal_told = Some(now);
        }
        drop(state);
        self.succeeded(now);
    }

    /// Notes that the server answered.
    pub(crate) fn succeeded(&self, now: Instant) {
        if !self.away.load(Ordering::Acquire) {
            return;
        }
        let ended = self.lock().outage.take();
        self.away.store(false, Ordering::Release);
        if let Some(outage) = ended {
            let duration_ms = (now - outage.since).as_millis();
            info!(duration_ms, "redis is back");
            self.wake.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(error: &QueueError) {
    let is_mistake = error.is_mistake();
    let error: &(dyn std::error::Error + 'static) = error;
    if is_mistake {
        error!(
            error,
            "the queue cannot use its redis, and asks again until this is mended"
        );
    } else {
        warn!(error, "redis is away; the queue waits for it");
    }
}

/// Half of a wait is fixed and half is chance, so that many processes do not come back together.
pub(crate) fn wait(failures: u32, chance: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let longest = FIRST_WAIT.saturating_mul(1 << doublings).min(LONGEST_WAIT);
    longest / 2 + (longest / 2).mul_f64(chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout() -> QueueError {
        QueueError::Timeout(Duration::from_secs(2))
    }

    #[test]
    fn waits_double_up_to_the_longest() {
        let longest: Vec<u128> = (1..=8).map(|failures| wait(failures, 1.0).as_millis()).collect();

        assert_eq!(longest, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(wait(u32::MAX, 1.0), LONGEST_WAIT);
        assert_eq!(wait(1, 0.0), FIRST_WAIT / 2);
    }

    #[tokio::test]
    async fn while_the_server_is_away_one_caller_tries_and_the_others_fail_at_once() {
        let health = Health::new(Arc::default());
        let now = Instant::now();
        assert!(health.may_ask(now).is_ok());

        health.failed(&timeout(), now, 1.0);
        assert!(health.may_ask(now + Duration::from_millis(99)).is_err());

        let later = now + Duration::from_millis(100);
        assert!(health.may_ask(later).is_ok());
        assert!(health.may_ask(later).is_err());
    }

    #[tokio::test]
    async fn many_calls_that_fail_at_once_are_one_failure() {
        let health = Health::new(Arc::default());
        let now = Instant::now();

        for _ in 0..50 {
            health.failed(&timeout(), now, 1.0);
        }

        assert!(health.may_ask(now + Duration::from_millis(100)).is_ok());
    }

    #[tokio::test]
    async fn an_answer_ends_the_outage_and_wakes_who_sleeps() {
        let wake = Arc::new(Notify::new());
        let health = Health::new(Arc::clone(&wake));
        let now = Instant::now();
        health.failed(&timeout(), now, 1.0);
        let woken = wake.notified();

        health.succeeded(now);

        assert!(health.may_ask(now).is_ok());
        woken.await;
    }

    #[tokio::test]
    async fn a_refusal_is_no_outage() {
        let health = Health::new(Arc::default());
        let now = Instant::now();
        let refusal = QueueError::Refused {
            operation: "push",
            source: redis::RedisError::from((redis::ErrorKind::Extension, "OOM")),
        };

        health.refused(&refusal, now);

        assert!(health.may_ask(now).is_ok());
    }
}
