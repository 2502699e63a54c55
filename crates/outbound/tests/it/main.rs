//! Calls over real sockets: every way that an endpoint can answer, and what becomes of it.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy takes for other code"
)]

mod calls;
mod circuit;
mod config;
mod in_flight;
mod receiver;
mod scenarios;
mod signing;
mod support;
