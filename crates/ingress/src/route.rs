use std::time::Duration;

use posthaste_jobs::{JobId, Kind, Priority, Timestamp, WebhookDelivery};
use posthaste_store::NewJob;

use crate::InvalidCatalog;
use crate::pattern::Pattern;

/// One `[[routes]]` entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteConfig {
    /// Name of the source.
    pub source: String,
    /// Types that are taken, `*` standing for any run of characters; all when empty.
    pub event_types: Vec<String>,
    /// Name of the endpoint.
    pub endpoint: String,
    /// How urgent its deliveries are.
    pub priority: Priority,
}

/// Where events of some types go.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    patterns: Vec<Pattern>,
    pub(crate) endpoint: String,
    pub(crate) priority: Priority,
    /// Payload of a delivery to this endpoint, made once.
    pub(crate) payload: String,
}

impl Route {
    pub(crate) fn new(config: RouteConfig) -> Result<Self, InvalidCatalog> {
        let RouteConfig {
            source,
            event_types,
            endpoint,
            priority,
        } = config;
        let patterns: Option<Vec<Pattern>> = match event_types.is_empty() {
            true => Pattern::new("*").map(|all| vec![all]),
            false => event_types.iter().map(|text| Pattern::new(text)).collect(),
        };
        let Some(patterns) = patterns else {
            return Err(InvalidCatalog::EmptyEventType {
                from: source,
                endpoint,
            });
        };
        let payload = serde_json::to_string(&WebhookDelivery {
            endpoint: endpoint.clone(),
        })
        .expect("a structure with one text is always JSON");
        Ok(Self {
            patterns,
            endpoint,
            priority,
            payload,
        })
    }

    /// Makes a delivery to the endpoint.
    pub(crate) fn delivery(&self, now: Timestamp) -> NewJob {
        NewJob {
            id: JobId::new(now, rand::random()),
            kind: Kind::WebhookDelivery,
            payload: self.payload.clone(),
            endpoint: Some(self.endpoint.clone()),
            wait: Duration::ZERO,
            priority: self.priority,
        }
    }

    /// Tells whether an event of this type goes here.
    pub(crate) fn takes(&self, event_type: Option<&str>) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(event_type))
    }
}
