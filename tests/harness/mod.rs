//! One noun a file.

mod app;
mod binary;
pub mod cases;
mod cli;
mod config;
mod http;
mod load;
mod port;
mod postgres;
mod process;
mod proxy;
mod receiver;
mod redis;
pub mod sign;
mod wait;

pub use app::{Builder, Setup, TestApp};
pub use binary::posthaste;
pub use cli::{Command, Finished};
pub use config::{Config, Endpoint, GITHUB_SECRET, SIGNING_SECRET, STANDARD_SECRET, STRIPE_SECRET};
pub use http::{Request, Response};
pub use load::{Load, Outcome};
pub use port::Port;
pub use postgres::Database;
pub use process::{Process, Role};
pub use proxy::Proxy;
pub use receiver::{Received, Receiver, Reply};
pub use redis::Redis;
pub use wait::{LONG, until};
