//! The queue: which job is due at this moment, and who has it. On Redis, or in the process.
//!
//! It holds ids and times, never payloads. An id that was pushed is in exactly one of three places: *ready*, *scheduled*
//! or *leased*; pushing it again changes nothing. What is ready waits in one of four lanes, which take turns. What the queue forgets (a Redis without its memory) it shows by another
//! [`Queue::epoch`], and whoever owns the jobs pushes them anew. It does not know what a job is, whether it exists, or
//! whether it has had its effect: a job may be handed out twice, and the ledger decides which run counts.

mod ack;
mod backend;
mod config;
mod depth;
mod engine;
mod entry;
mod error;
mod held;
mod inspection;
mod keeper;
mod local;
mod open_error;
mod persistence;
mod probe;
mod queue;
mod redis_url;
mod remote;
mod survey;
mod timing;
mod turns;

pub use ack::{Ack, AckCodec};
pub use backend::{Backend, HandlerLayer};
pub use config::Config;
pub use depth::Depth;
pub use entry::Entry;
pub use error::QueueError;
pub use inspection::{AppendOnly, Inspection};
pub use open_error::OpenError;
pub use persistence::JobPersistence;
pub use probe::Probe;
pub use queue::Queue;
pub use survey::Survey;
pub use timing::Timing;
