//! The words of Posthaste: ids, kinds, states, attempts, and the rule by which a job ends.
//!
//! No I/O, no clock, no randomness: whoever calls passes them in.

mod backoff;
mod chain;
mod ending;
mod id;
mod kind;
mod lane;
mod span;
mod state;
mod time;

pub use backoff::{InvalidBackoff, RetryPolicy};
pub use chain::chain;
pub use ending::{Attempt, DeadReason, Decision, Ending, end};
pub use id::{EventId, JobId, ParseIdError};
pub use kind::{Kind, Queue, UnknownKind, UnknownQueue, WebhookDelivery};
pub use lane::{Lane, Priority, UnknownPriority};
pub use span::{ParseSpanError, Span};
pub use state::{State, UnknownState};
pub use time::{Clock, ParseTimestampError, Timestamp};
