//! One breaker per endpoint: failsafe's state machine, and before it a gate of our own.
//!
//! failsafe admits every call while half-open, does not say until when it rejects, and hears calls
//! that began before it opened. The gate admits one probe at a time, remembers until when, and hears
//! only calls that it admitted in the present state.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use failsafe::{Instrument, StateMachine};
use tracing::{info, warn};

use crate::BreakerConfig;
use crate::failure_rate::FailureRate;

/// The shortest wait that a caller is given while a probe is under way.
const SHORTEST: Duration = Duration::from_millis(250);

/// What an endpoint's circuit does with the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Lets it through.
    Closed,
    /// Rejects it.
    Open {
        /// How long it goes on doing so.
        retry_in: Duration,
    },
    /// Lets it through as the probe, or rejects it while another is the probe.
    HalfOpen,
}

pub(crate) struct Breaker {
    endpoint: String,
    cooldown: Duration,
    gate: Mutex<Gate>,
}

struct Gate {
    machine: StateMachine<FailureRate, Latch>,
    latch: Latch,
    /// How often it has opened or closed: a call that was admitted in another era is not heard.
    era: u64,
    /// Until when calls are rejected, then the time of the probe; `None` while closed.
    open_until: Option<Instant>,
    /// Since when a probe is under way.
    probe_since: Option<Instant>,
}

/// Whether the machine has opened, which it tells to nobody else.
#[derive(Clone, Default)]
struct Latch(Arc<AtomicBool>);

impl Instrument for Latch {
    fn on_call_rejected(&self) {}
    fn on_half_open(&self) {}

    fn on_open(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn on_closed(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Breaker {
    pub(crate) fn new(endpoint: &str, config: BreakerConfig) -> Self {
        let latch = Latch::default();
        let policy = FailureRate::new(config, Instant::now());
        Self {
            endpoint: endpoint.to_owned(),
            cooldown: config.cooldown,
            gate: Mutex::new(Gate {
                machine: StateMachine::new(policy, latch.clone()),
                latch,
                era: 0,
                open_until: None,
                probe_since: None,
            }),
        }
    }

    pub(crate) fn state(&self) -> BreakerState {
        match self.gate().open_until {
            None => BreakerState::Closed,
            Some(until) => match until.checked_duration_since(Instant::now()) {
                Some(retry_in) if !retry_in.is_zero() => BreakerState::Open { retry_in },
                _ => BreakerState::HalfOpen,
            },
        }
    }

    /// Says how long to stay away, without taking a permit.
    pub(crate) fn rejects(&self) -> Option<Duration> {
        self.gate().rejects(Instant::now())
    }

    /// Admits a call, or says how long to stay away.
    pub(crate) fn admit(&self) -> Result<Admission<'_>, Duration> {
        let mut gate = self.gate();
        let now = Instant::now();
        if let Some(retry_in) = gate.rejects(now) {
            return Err(retry_in);
        }
        if !gate.machine.is_call_permitted() {
            return Err(SHORTEST);
        }
        let is_probe = gate.open_until.is_some();
        if is_probe {
            gate.probe_since = Some(now);
        }
        Ok(Admission {
            breaker: self,
            era: gate.era,
            is_probe,
        })
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    fn rejects(&self, now: Instant) -> Option<Duration> {
        let left = self.open_until?.saturating_duration_since(now);
        if !left.is_zero() {
            return Some(left);
        }
        // As long again as the probe has taken: soon after a quick one, and not often during a slow one.
        self.probe_since
            .map(|since| now.saturating_duration_since(since).max(SHORTEST))
    }
}

/// The right to one call. Dropped unheard, it says nothing of the endpoint and makes room for
/// another probe.
pub(crate) struct Admission<'a> {
    breaker: &'a Breaker,
    era: u64,
    is_probe: bool,
}

impl Admission<'_> {
    /// Tells how the call ended.
    pub(crate) fn ended(self, failed: bool) {
        if failed { self.failed() } else { self.succeeded() }
    }

    fn succeeded(&self) {
        let Some(mut gate) = self.heard() else { return };
        gate.machine.on_success();
        if self.is_probe {
            gate.era += 1;
            gate.open_until = None;
            gate.probe_since = None;
            drop(gate);
            info!(endpoint.name = %self.breaker.endpoint, "circuit closed");
        }
    }

    fn failed(&self) {
        let Some(mut gate) = self.heard() else { return };
        gate.machine.on_error();
        if gate.latch.0.load(Ordering::Relaxed) {
            gate.era += 1;
            // Read after the machine has read it, so that it admits whoever comes back at this time.
            gate.open_until = Some(Instant::now() + self.breaker.cooldown);
            gate.probe_since = None;
            drop(gate);
            if !self.is_probe {
                let cooldown_ms = self.breaker.cooldown.as_millis() as u64;
                warn!(endpoint.name = %self.breaker.endpoint, cooldown_ms, "circuit opened");
            }
        }
    }

    fn heard(&self) -> Option<MutexGuard<'_, Gate>> {
        Some(self.breaker.gate()).filter(|gate| gate.era == self.era)
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if self.is_probe
            && let Some(mut gate) = self.heard()
        {
            gate.probe_since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_CALLS: u32 = 3;
    const COOLDOWN: Duration = Duration::from_millis(50);

    fn breaker() -> Breaker {
        Breaker::new(
            "orders",
            BreakerConfig {
                failure_rate: 0.5,
                min_calls: MIN_CALLS,
                window: Duration::from_secs(30),
                cooldown: COOLDOWN,
            },
        )
    }

    fn opened() -> Breaker {
        let breaker = breaker();
        for _ in 0..MIN_CALLS {
            breaker.admit().ok().unwrap().ended(true);
        }
        breaker
    }

    fn half_open() -> Breaker {
        let breaker = opened();
        while breaker.state() != BreakerState::HalfOpen {
            std::thread::sleep(COOLDOWN / 10);
        }
        breaker
    }

    #[test]
    fn it_opens_at_min_calls_failures_and_not_at_one_fewer() {
        let breaker = breaker();

        for _ in 1..MIN_CALLS {
            breaker.admit().ok().unwrap().ended(true);
            assert_eq!(breaker.state(), BreakerState::Closed);
        }
        breaker.admit().ok().unwrap().ended(true);

        assert!(matches!(breaker.state(), BreakerState::Open { .. }));
    }

    #[test]
    fn while_open_it_admits_nobody_and_says_until_when() {
        let retry_in = opened().admit().err().unwrap();

        assert!(retry_in <= COOLDOWN && !retry_in.is_zero(), "{retry_in:?}");
    }

    #[test]
    fn half_open_admits_one_probe_at_a_time() {
        let breaker = half_open();

        let probe = breaker.admit().ok().unwrap();

        assert_eq!(breaker.admit().err(), Some(SHORTEST));
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        probe.ended(false);
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn a_probe_that_fails_opens_it_again() {
        let breaker = half_open();

        breaker.admit().ok().unwrap().ended(true);

        assert!(matches!(breaker.state(), BreakerState::Open { .. }));
    }

    #[test]
    fn a_probe_that_is_dropped_makes_room_for_another_and_decides_nothing() {
        let breaker = half_open();

        drop(breaker.admit().ok().unwrap());

        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert!(breaker.admit().is_ok());
    }

    #[test]
    fn a_call_from_before_the_opening_does_not_close_it() {
        let breaker = breaker();
        let early = breaker.admit().ok().unwrap();
        for _ in 0..MIN_CALLS {
            breaker.admit().ok().unwrap().ended(true);
        }
        while breaker.state() != BreakerState::HalfOpen {
            std::thread::sleep(COOLDOWN / 10);
        }

        let probe = breaker.admit().ok().unwrap();
        early.ended(false);

        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert!(breaker.admit().is_err());
        probe.ended(true);
        assert!(matches!(breaker.state(), BreakerState::Open { .. }));
    }

    #[test]
    fn closing_forgets_the_failures_that_opened_it() {
        let breaker = half_open();
        breaker.admit().ok().unwrap().ended(false);

        breaker.admit().ok().unwrap().ended(true);

        assert_eq!(breaker.state(), BreakerState::Closed);
    }
}
