//! The ledger: what came in, what we owe for it, and what became of it. On SQLite and on PostgreSQL.
//!
//! It promises that what it has answered is committed, that one event is accepted once, and that one job
//! has one holder at a time whose older holders can change nothing. It does not promise that a job runs
//! once: a worker may be lost after the effect and before [`Ledger::settle`].

mod batch;
mod claim;
mod config;
mod error;
mod event;
mod filter;
mod headers;
mod job;
mod ledger;
mod postgres;
mod read;
mod schema;
mod settlement;
mod sqlite;
mod standing;
mod value;

pub use claim::{Claim, Claimed, Company, Lease};
pub use config::Config;
pub use error::{LedgerError, OpenError};
pub use event::{Accepted, EventData, EventRow, NewEvent};
pub use filter::{EventFilter, JobFilter};
pub use headers::Headers;
pub use job::{Due, JobRow, NewJob};
pub use ledger::Ledger;
pub use schema::SchemaError;
pub use settlement::{AttemptRecord, Settled, Settlement};
pub use standing::Standing;
