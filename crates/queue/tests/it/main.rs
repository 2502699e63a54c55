//! Queues under test: what both engines do, and what the one on Redis does when Redis misbehaves.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod conformance;
mod inspection;
mod support;
mod trouble;
