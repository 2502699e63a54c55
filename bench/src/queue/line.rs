use serde::Serialize;

use super::options::{Engine, Options};
use super::peer::Peer;

/// One line of the result. A field that does not apply is left out.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    bench: &'static str,
    measure: &'static str,
    engine: &'static str,
    /// Of a peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// Jobs that the figure is over.
    jobs: usize,
    concurrency: u16,
    /// Ids that are fetched at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) push_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) consume_per_s: Option<f64>,
    /// Consumed in a second, against the first line of its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ratio: Option<f64>,
    /// Ours, divided by the peer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) push_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) consume_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wakeup_p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) wakeup_p99_ms: Option<f64>,
    /// How long after all were due the last was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) drained_within_s: Option<f64>,
    /// Growth of `used_memory`, divided by the jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes_per_job: Option<f64>,
    /// `MEMORY USAGE` of all keys, divided by the jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key_bytes_per_job: Option<f64>,
    /// `used_memory` before the first job came and after the last was done, in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) idle_mb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after_mb: Option<f64>,
    cores: usize,
}

impl Line {
    /// Makes a line about nothing yet.
    pub(super) fn new(options: &Options, engine: Engine, measure: &'static str, jobs: usize) -> Self {
        Self {
            batch: Some(options.batch),
            ..Self::of(options, engine.name(), measure, jobs)
        }
    }

    /// Makes a line about nothing yet of another's queue.
    pub(super) fn of_peer(options: &Options, peer: Peer, measure: &'static str, jobs: usize) -> Self {
        Self::of(options, peer.name(), measure, jobs)
    }

    fn of(options: &Options, engine: &'static str, measure: &'static str, jobs: usize) -> Self {
        Self {
            bench: "queue",
            measure,
            engine,
            version: None,
            jobs,
            concurrency: options.concurrency,
            batch: None,
            push_per_s: None,
            consume_per_s: None,
            ratio: None,
            push_ratio: None,
            consume_ratio: None,
            wakeup_p50_ms: None,
            wakeup_p99_ms: None,
            drained_within_s: None,
            bytes_per_job: None,
            key_bytes_per_job: None,
            idle_mb: None,
            after_mb: None,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}
