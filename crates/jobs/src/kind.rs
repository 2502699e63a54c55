use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a job does. The name is stored, and never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Takes one event to one endpoint.
    WebhookDelivery,
}

impl Kind {
    /// Every kind there is.
    pub const ALL: [Self; 1] = [Self::WebhookDelivery];

    /// Returns the stored name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WebhookDelivery => "webhook.delivery",
        }
    }

    /// Returns the queue that jobs of this kind wait in.
    #[must_use]
    pub const fn queue(self) -> Queue {
        match self {
            Self::WebhookDelivery => Queue::Webhooks,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text names no kind of job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no kind of job is called {name:?}")]
pub struct UnknownKind {
    /// What was asked for.
    pub name: String,
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .ok_or_else(|| UnknownKind {
                name: name.to_owned(),
            })
    }
}

/// A named list of jobs with its own concurrency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Deliveries of events to endpoints.
    Webhooks,
}

impl Queue {
    /// Every queue there is.
    pub const ALL: [Self; 1] = [Self::Webhooks];

    /// Returns the name, as on the command line and in Redis.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Webhooks => "webhooks",
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text names no queue.
#[derive(Debug, thiserror::Error)]
#[error("no queue is called {name:?}")]
pub struct UnknownQueue {
    /// What was asked for.
    pub name: String,
}

impl FromStr for Queue {
    type Err = UnknownQueue;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|queue| queue.as_str() == name)
            .ok_or_else(|| UnknownQueue {
                name: name.to_owned(),
            })
    }
}

/// The payload of a [`Kind::WebhookDelivery`] job; the event itself stands in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookDelivery {
    /// Name of the endpoint in the configuration.
    pub endpoint: String,
}
