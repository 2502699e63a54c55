//! What leaves: signed HTTP calls, each behind the breaker and the in-flight limit of its endpoint. Knows no job.
//!
//! One call is one `POST`, sent at most once: nothing here retries, follows a redirect or takes a proxy
//! from the environment. The caller decides what an error means.

mod breaker;
mod call;
mod client;
mod config;
mod deadline;
mod delivery;
mod endpoint;
mod endpoints;
mod error;
mod failure_rate;
mod in_flight;
mod retry_after;
mod signature;

pub use breaker::BreakerState;
pub use config::{BreakerConfig, EndpointConfig, InvalidEndpoint};
pub use delivery::{CAPTURE, Delivery, Receipt};
pub use endpoints::Endpoints;
pub use error::CallError;
pub use retry_after::MAX_RETRY_AFTER;
