use std::fmt;
use std::time::Duration;

/// The longest of the times below; beyond it lies a typing error, and in the end no clock.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// One `[[endpoints]]` entry without its retry policy, which is about jobs.
#[derive(Clone)]
pub struct EndpointConfig {
    /// The name that routes, logs and commands use: letters, digits, `-`, `_` and `.`, at most 64.
    pub name: String,
    /// Where to `POST`; `http` or `https`. A user and password in it are sent as basic authorization.
    pub url: String,
    /// How long a call may take in all: connecting, answering, and what is kept of the body.
    pub timeout: Duration,
    /// How many calls may be under way at once.
    pub max_in_flight: u32,
    /// `whsec_<base64>`; signs each call by Standard Webhooks. The prefix and the padding may be left out.
    pub signing_secret: Option<String>,
    /// When to stop calling, and for how long.
    pub breaker: BreakerConfig,
}

/// Leaves out what may hold a secret.
impl fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointConfig")
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .field("max_in_flight", &self.max_in_flight)
            .field("signed", &self.signing_secret.is_some())
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}

/// When an endpoint's circuit opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerConfig {
    /// The share of failed calls at which it opens, over 0 and up to 1.
    pub failure_rate: f64,
    /// How many calls must have ended within `window` before the share means anything.
    pub min_calls: u32,
    /// How far back calls are counted.
    pub window: Duration,
    /// How long it stays open before one call is let through as a probe.
    pub cooldown: Duration,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            failure_rate: 0.5,
            min_calls: 10,
            window: Duration::from_secs(30),
            cooldown: Duration::from_secs(30),
        }
    }
}

/// A mistake in an endpoint's configuration. Never says the value of a URL or a secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("endpoint {endpoint:?}: `{key}` {problem}")]
pub struct InvalidEndpoint {
    endpoint: String,
    key: &'static str,
    problem: &'static str,
}

impl InvalidEndpoint {
    /// Returns the name of the endpoint, as it was written.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the key in the endpoint's entry, `breaker.window` for one below another.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.key
    }
}

impl EndpointConfig {
    /// Checks all that needs no parsing.
    pub(crate) fn validate(&self) -> Result<(), InvalidEndpoint> {
        const NAME: &str = "must be 1 to 64 letters, digits, `-`, `_` or `.`";
        const TIME: &str = "must be longer than nothing and no longer than a day";
        let is_time = |time: Duration| !time.is_zero() && time <= LONGEST;
        let breaker = &self.breaker;
        let share = breaker.failure_rate > 0.0 && breaker.failure_rate <= 1.0;

        self.require(is_name(&self.name), "name", NAME)?;
        self.require(is_time(self.timeout), "timeout", TIME)?;
        self.require(self.max_in_flight >= 1, "max_in_flight", "must be at least 1")?;
        self.require(share, "breaker.failure_rate", "must be over 0 and up to 1")?;
        self.require(breaker.min_calls >= 1, "breaker.min_calls", "must be at least 1")?;
        self.require(is_time(breaker.window), "breaker.window", TIME)?;
        self.require(is_time(breaker.cooldown), "breaker.cooldown", TIME)
    }

    /// Makes the error for `key` of this endpoint.
    pub(crate) fn invalid(&self, key: &'static str, problem: &'static str) -> InvalidEndpoint {
        InvalidEndpoint {
            endpoint: self.name.clone(),
            key,
            problem,
        }
    }

    fn require(&self, holds: bool, key: &'static str, problem: &'static str) -> Result<(), InvalidEndpoint> {
        if holds {
            Ok(())
        } else {
            Err(self.invalid(key, problem))
        }
    }
}

fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(allowed)
}
