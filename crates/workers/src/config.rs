use posthaste_jobs::Span;
use serde::{Deserialize, Serialize};

/// How a process works. Section `[workers]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address and port where a process tells how it is, at `/healthz` and `/readyz`; nowhere when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Jobs that a process runs at once, per queue; at least 1.
    pub concurrency: usize,
    /// How long a stop waits for what runs before it is given back.
    pub grace: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: None,
            concurrency: 256,
            grace: Span::from_secs(30),
        }
    }
}

/// Why a worker configuration makes no sense.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum InvalidConfig {
    /// Nothing would ever run.
    #[error("concurrency must be from 1 to {max}, not {0}", max = Config::MAX_CONCURRENCY)]
    Concurrency(usize),
}

impl Config {
    /// The most jobs that one process may run at once, per queue.
    pub const MAX_CONCURRENCY: usize = 10_000;

    /// Checks the numbers.
    ///
    /// # Errors
    ///
    /// Names the number that is out of bounds.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        if (1..=Self::MAX_CONCURRENCY).contains(&self.concurrency) {
            Ok(())
        } else {
            Err(InvalidConfig::Concurrency(self.concurrency))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_is_valid_at_its_limits_and_not_one_past_them() {
        let with = |concurrency| {
            Config {
                concurrency,
                ..Config::default()
            }
            .validate()
        };

        assert_eq!(with(1), Ok(()));
        assert_eq!(with(10_000), Ok(()));
        assert_eq!(with(0), Err(InvalidConfig::Concurrency(0)));
        assert_eq!(with(10_001), Err(InvalidConfig::Concurrency(10_001)));
    }
}
