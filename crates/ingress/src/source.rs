use std::fmt;

use bytesize::ByteSize;
use posthaste_jobs::{Span, Timestamp};
use posthaste_store::NewJob;

use crate::InvalidCatalog;
use crate::route::Route;
use crate::scheme::{Scheme, Verifier};

/// One `[[sources]]` entry as written, its secrets resolved.
#[derive(Clone)]
pub struct SourceConfig {
    /// Its name, and the end of its path: `/webhooks/{name}`.
    pub name: String,
    /// How it signs.
    pub scheme: Scheme,
    /// Any of them verifies.
    pub secrets: Vec<String>,
    /// How far a signed timestamp may be from our clock, either way; five minutes by default.
    pub tolerance: Option<Span>,
    /// Largest body; `http.max_body` by default.
    pub max_body: Option<ByteSize>,
}

impl fmt::Debug for SourceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceConfig")
            .field("name", &self.name)
            .field("scheme", &self.scheme)
            .field("secrets", &format_args!("[…; {}]", self.secrets.len()))
            .field("tolerance", &self.tolerance)
            .field("max_body", &self.max_body)
            .finish()
    }
}

/// A source, ready to serve requests.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) trust: Trust,
    pub(crate) max_body: Option<u64>,
    routes: Vec<Route>,
}

/// Whom a source believes.
#[derive(Clone, Debug)]
pub(crate) enum Trust {
    /// Who can sign.
    Signed(Box<Verifier>),
    /// Everyone, as written in the configuration.
    Anyone,
}

impl Source {
    pub(crate) fn new(config: SourceConfig) -> Result<Self, InvalidCatalog> {
        let SourceConfig {
            name,
            scheme,
            secrets,
            tolerance,
            max_body,
        } = config;
        if !fits_in_a_path(&name) {
            return Err(InvalidCatalog::SourceName { name });
        }
        let verifier =
            scheme
                .verifier(&secrets, tolerance.map(|span| span.0))
                .map_err(|(index, source)| InvalidCatalog::Secret {
                    name: name.clone(),
                    position: index + 1,
                    source,
                })?;
        let timestamped = verifier
            .as_ref()
            .is_some_and(|verifier| verifier.rules().timestamp.is_some());
        if tolerance.is_some() && !timestamped {
            return Err(InvalidCatalog::UnusedTolerance { name });
        }
        let trust = match verifier {
            Some(_) if secrets.is_empty() => return Err(InvalidCatalog::NoSecret { name }),
            None if !secrets.is_empty() => return Err(InvalidCatalog::UnusedSecret { name }),
            Some(verifier) => Trust::Signed(Box::new(verifier)),
            None => Trust::Anyone,
        };
        Ok(Self {
            name,
            trust,
            max_body: max_body.map(|size| size.as_u64()),
            routes: Vec::new(),
        })
    }

    pub(crate) fn add(&mut self, route: Route) {
        self.routes.push(route);
    }

    /// Makes a delivery for each endpoint that an event goes to; of several routes to one the first counts.
    pub(crate) fn deliveries(&self, event_type: Option<&str>, now: Timestamp) -> Vec<NewJob> {
        let mut taken: Vec<&Route> = Vec::new();
        for route in self.routes.iter().filter(|route| route.takes(event_type)) {
            if !taken.iter().any(|other| other.endpoint == route.endpoint) {
                taken.push(route);
            }
        }
        taken.into_iter().map(|route| route.delivery(now)).collect()
    }
}

fn fits_in_a_path(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
