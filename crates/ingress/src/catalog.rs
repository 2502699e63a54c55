use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use posthaste_jobs::Timestamp;
use posthaste_store::NewJob;

use crate::route::{Route, RouteConfig};
use crate::scheme::InvalidSecret;
use crate::source::{Source, SourceConfig};

/// Sources and routes, checked against each other; replaced as a whole on reload.
#[derive(Clone, Debug)]
pub struct Catalog {
    sources: HashMap<String, Arc<Source>>,
}

/// Why sources and routes do not make a catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCatalog {
    /// A source's name does not fit in a path.
    #[error("source name {name:?} is not made of letters, digits, \"-\" and \"_\", at most 64 of them")]
    SourceName {
        /// As written.
        name: String,
    },
    /// Two sources share a name.
    #[error("source {name:?} is there twice")]
    DuplicateSource {
        /// As written.
        name: String,
    },
    /// Two endpoints share a name.
    #[error("endpoint {name:?} is there twice")]
    DuplicateEndpoint {
        /// As written.
        name: String,
    },
    /// A source that must verify has nothing to do it with.
    #[error("source {name:?} has no secrets, and its scheme needs one")]
    NoSecret {
        /// Of the source.
        name: String,
    },
    /// A source that verifies nothing has a secret, so somebody believes that it does.
    #[error("source {name:?} has secrets, and scheme \"none\" verifies nothing")]
    UnusedSecret {
        /// Of the source.
        name: String,
    },
    /// A secret cannot be one of the source's scheme.
    #[error("secret {position} of source {name:?} is not valid")]
    Secret {
        /// Of the source.
        name: String,
        /// In its list, from 1.
        position: usize,
        /// Why.
        #[source]
        source: InvalidSecret,
    },
    /// A tolerance for timestamps, and the scheme has none.
    #[error("source {name:?} has a tolerance, and its scheme signs no timestamp")]
    UnusedTolerance {
        /// Of the source.
        name: String,
    },
    /// A route begins at a source that is not there.
    #[error("a route to endpoint {endpoint:?} names source {name:?}, which is not there")]
    UnknownSource {
        /// Of the source.
        name: String,
        /// Where the route ends.
        endpoint: String,
    },
    /// A route ends at an endpoint that is not there.
    #[error("a route from source {from:?} names endpoint {name:?}, which is not there")]
    UnknownEndpoint {
        /// Of the endpoint.
        name: String,
        /// Where the route begins.
        from: String,
    },
    /// A type of a route is an empty text, which no event has.
    #[error("a route from source {from:?} to endpoint {endpoint:?} has an empty event type")]
    EmptyEventType {
        /// Where the route begins.
        from: String,
        /// Where the route ends.
        endpoint: String,
    },
}

impl Catalog {
    /// Checks sources, routes and the names of endpoints against each other.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, by its name.
    pub fn new(
        sources: Vec<SourceConfig>,
        routes: Vec<RouteConfig>,
        endpoints: &[String],
    ) -> Result<Self, InvalidCatalog> {
        let mut known = HashSet::new();
        if let Some(name) = endpoints.iter().find(|name| !known.insert(name.as_str())) {
            return Err(InvalidCatalog::DuplicateEndpoint { name: name.clone() });
        }
        let mut ready: HashMap<String, Source> = HashMap::with_capacity(sources.len());
        for config in sources {
            let source = Source::new(config)?;
            let name = source.name.clone();
            if ready.insert(name.clone(), source).is_some() {
                return Err(InvalidCatalog::DuplicateSource { name });
            }
        }
        for config in routes {
            let Some(source) = ready.get_mut(&config.source) else {
                return Err(InvalidCatalog::UnknownSource {
                    name: config.source,
                    endpoint: config.endpoint,
                });
            };
            if !known.contains(config.endpoint.as_str()) {
                return Err(InvalidCatalog::UnknownEndpoint {
                    name: config.endpoint,
                    from: config.source,
                });
            }
            source.add(Route::new(config)?);
        }
        let sources = ready.into_iter().map(|(name, source)| (name, Arc::new(source)));
        Ok(Self {
            sources: sources.collect(),
        })
    }

    /// Makes a delivery for each endpoint that an event goes to, in the order of the routes.
    #[must_use]
    pub fn deliveries(&self, source: &str, event_type: Option<&str>, now: Timestamp) -> Vec<NewJob> {
        self.source(source)
            .map(|source| source.deliveries(event_type, now))
            .unwrap_or_default()
    }

    pub(crate) fn source(&self, name: &str) -> Option<&Arc<Source>> {
        self.sources.get(name)
    }
}
