//! What arrives: verified, named, accepted, answered.
//!
//! A request to `/webhooks/{source}` passes four gates in this order: limits, verification over
//! the raw bytes, identity, and the ledger. A 2xx means that the ledger has committed the event and
//! its jobs; nothing else is promised, and a request that is refused leaves nothing behind but a
//! line in the log. The body stays the bytes that were received: JSON is looked at only to find an
//! id and a type, and never fails an event.

mod body;
mod catalog;
mod config;
mod connection;
mod downstream;
mod identity;
mod ingress;
mod json;
mod pattern;
mod probes;
mod problem;
mod pusher;
mod readiness;
mod rejected;
mod rejections;
mod request_id;
mod route;
mod router;
mod scheme;
mod server;
mod source;
#[cfg(test)]
mod tests;
mod webhook;

pub use catalog::{Catalog, InvalidCatalog};
pub use config::Config;
pub use ingress::Ingress;
pub use probes::Probes;
pub use readiness::{Duty, Stuck};
pub use route::RouteConfig;
pub use scheme::{
    Encoding, HeaderField, HmacAlgorithm, HmacScheme, InvalidHeaderField, InvalidSecret, Refusal, Scheme,
    Verifier,
};
pub use source::SourceConfig;
