use posthaste_ingress::{RouteConfig, Scheme, SourceConfig};
use posthaste_jobs::{Priority, RetryPolicy, Span};
use posthaste_outbound::{BreakerConfig, EndpointConfig};
use serde::Deserialize;

use super::secret::Secret;

/// Where the ledger is. Section `[ledger]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Ledger {
    /// Holds a password, as a rule.
    pub(crate) url: Secret,
    pub(crate) max_connections: u32,
}

impl Default for Ledger {
    fn default() -> Self {
        let defaults = posthaste_store::Config::default();
        Self {
            url: Secret::new(defaults.url),
            max_connections: defaults.max_connections,
        }
    }
}

impl Ledger {
    /// Returns what the room takes.
    pub(crate) fn for_room(&self) -> posthaste_store::Config {
        posthaste_store::Config {
            url: self.url.expose().to_owned(),
            max_connections: self.max_connections,
        }
    }

    /// Returns the name of the engine, for people and logs.
    pub(crate) fn engine(&self) -> &'static str {
        if self.url.expose().starts_with("sqlite:") {
            "sqlite"
        } else {
            "postgres"
        }
    }
}

/// Where the queues are. Section `[queue]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Queue {
    /// Holds a password, as a rule.
    pub(crate) url: Secret,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            url: Secret::new(posthaste_queue::Config::default().url),
        }
    }
}

impl Queue {
    /// Returns what the room takes.
    pub(crate) fn for_room(&self) -> posthaste_queue::Config {
        posthaste_queue::Config {
            url: self.url.expose().to_owned(),
        }
    }

    /// Tells whether the queue lives in the process, where no other process can see it.
    pub(crate) fn is_local(&self) -> bool {
        self.url.expose().starts_with("local:")
    }

    /// Returns the name of the engine, for people and logs.
    pub(crate) fn engine(&self) -> &'static str {
        match self.url.expose().split_once(':').map(|(scheme, _)| scheme) {
            Some("local") => "local",
            Some("redis-sentinel" | "rediss-sentinel") => "redis-sentinel",
            Some("redis-cluster" | "rediss-cluster") => "redis-cluster",
            _ => "redis",
        }
    }
}

/// What is logged, and how. Section `[log]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Log {
    pub(crate) format: LogFormat,
    /// As in `info,posthaste_workers=debug`.
    pub(crate) filter: String,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            format: LogFormat::Pretty,
            filter: "info".to_owned(),
        }
    }
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object a line.
    Json,
}

/// Who sends to us. One of `[[sources]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) scheme: Scheme,
    #[serde(default)]
    pub(crate) secrets: Vec<Secret>,
    pub(crate) tolerance: Option<Span>,
    pub(crate) max_body: Option<bytesize::ByteSize>,
}

impl Source {
    /// Returns what the room takes.
    pub(crate) fn for_room(&self) -> SourceConfig {
        SourceConfig {
            name: self.name.clone(),
            scheme: self.scheme.clone(),
            secrets: self
                .secrets
                .iter()
                .map(|secret| secret.expose().to_owned())
                .collect(),
            tolerance: self.tolerance,
            max_body: self.max_body,
        }
    }
}

/// Where we send. One of `[[endpoints]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Endpoint {
    pub(crate) name: String,
    /// Often holds a token.
    pub(crate) url: Secret,
    #[serde(default = "Endpoint::timeout")]
    pub(crate) timeout: Span,
    #[serde(default = "Endpoint::max_in_flight")]
    pub(crate) max_in_flight: u32,
    pub(crate) signing_secret: Option<Secret>,
    #[serde(default)]
    pub(crate) retry: RetryPolicy,
    #[serde(default)]
    pub(crate) breaker: Breaker,
}

impl Endpoint {
    const fn timeout() -> Span {
        Span::from_secs(10)
    }

    const fn max_in_flight() -> u32 {
        32
    }

    /// Returns what the room takes.
    pub(crate) fn for_room(&self) -> EndpointConfig {
        EndpointConfig {
            name: self.name.clone(),
            url: self.url.expose().to_owned(),
            timeout: self.timeout.0,
            max_in_flight: self.max_in_flight,
            signing_secret: self
                .signing_secret
                .as_ref()
                .map(|secret| secret.expose().to_owned()),
            breaker: self.breaker.for_room(),
        }
    }
}

/// When an endpoint counts as sick, and for how long.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Breaker {
    pub(crate) failure_rate: f64,
    pub(crate) min_calls: u32,
    pub(crate) window: Span,
    pub(crate) cooldown: Span,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failure_rate: 0.5,
            min_calls: 10,
            window: Span::from_secs(30),
            cooldown: Span::from_secs(30),
        }
    }
}

impl Breaker {
    fn for_room(&self) -> BreakerConfig {
        BreakerConfig {
            failure_rate: self.failure_rate,
            min_calls: self.min_calls,
            window: self.window.0,
            cooldown: self.cooldown.0,
        }
    }
}

/// Which events of a source go to which endpoint. One of `[[routes]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Route {
    pub(crate) source: String,
    #[serde(default = "Route::all_types")]
    pub(crate) event_types: Vec<String>,
    pub(crate) endpoint: String,
    #[serde(default)]
    pub(crate) priority: Priority,
}

impl Route {
    fn all_types() -> Vec<String> {
        vec!["*".to_owned()]
    }

    /// Returns what the room takes.
    pub(crate) fn for_room(&self) -> RouteConfig {
        RouteConfig {
            source: self.source.clone(),
            event_types: self.event_types.clone(),
            endpoint: self.endpoint.clone(),
            priority: self.priority,
        }
    }
}
