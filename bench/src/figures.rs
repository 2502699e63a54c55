//! What is printed: figures for machines on stdout, notes for people on stderr.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use serde::Serialize;

use crate::Kept;
use crate::args::Setup;
use crate::messages::Scheme;

/// One line of the result. A field that does not apply is left out.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) bench: &'static str,
    pub(crate) setup: Setup,
    /// Events that the figure is over.
    pub(crate) jobs: usize,
    pub(crate) connections: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scheme: Option<Scheme>,
    /// Events a second that were asked for, where that was fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<u32>,
    /// What chance was drawn from, to draw the same again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kills: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restarts: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workers: Option<usize>,
    /// What happened before what is timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blow: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accept_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deliver_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accept_p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accept_p99_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accepted: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delivered: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delivered_twice: Option<usize>,
    /// Deliveries under way at the kills, of which each may have been made twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_flight_at_kills: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recovered_within_s: Option<f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) recovered_by_blow_s: BTreeMap<&'static str, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requeued_within_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delivered_within_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) longest_gap_ms: Option<f64>,
    /// Deliveries a second to the endpoints that are well, without and with the one that is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) alone_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) beside_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<f64>,
    /// Peak resident memory in MiB, by process.
    pub(crate) rss_mb: BTreeMap<String, f64>,
    /// Processor time spent on one event in milliseconds, by process.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) cpu_ms_per_event: BTreeMap<String, f64>,
    pub(crate) cores: usize,
}

impl Figure {
    /// Makes a figure about nothing yet.
    pub(crate) fn new(bench: &'static str, setup: Setup, jobs: usize, connections: u16) -> Self {
        Self {
            bench,
            setup,
            jobs,
            connections,
            scheme: None,
            rate: None,
            seed: None,
            kills: None,
            restarts: None,
            workers: None,
            blow: None,
            accept_per_s: None,
            deliver_per_s: None,
            p50_ms: None,
            p99_ms: None,
            accept_p50_ms: None,
            accept_p99_ms: None,
            accepted: None,
            delivered: None,
            lost: None,
            delivered_twice: None,
            in_flight_at_kills: None,
            recovered_within_s: None,
            recovered_by_blow_s: BTreeMap::new(),
            requeued_within_s: None,
            delivered_within_s: None,
            longest_gap_ms: None,
            alone_per_s: None,
            beside_per_s: None,
            ratio: None,
            rss_mb: BTreeMap::new(),
            cpu_ms_per_event: BTreeMap::new(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Returns whether nothing was lost, and nothing delivered twice that was not under way at a kill.
    pub(crate) fn kept(&self) -> Kept {
        let excused = self.in_flight_at_kills.unwrap_or(usize::MAX);
        Kept::when(self.lost.unwrap_or(0) == 0 && self.delivered_twice.unwrap_or(0) <= excused)
    }

    /// Prints the figure as one line of JSON on stdout.
    pub(crate) fn print(&self) -> io::Result<()> {
        print(self)
    }
}

/// Prints a figure as one line of JSON on stdout.
pub(crate) fn print(figure: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(figure)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()
}

/// Returns `value` with so many decimals as a figure bears.
pub(crate) fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}

/// Tells whoever is watching, on stderr.
pub(crate) fn note(text: &str) {
    // A closed stderr is no reason to stop measuring.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_does_not_apply_is_left_out() {
        let mut figure = Figure::new("ingest", Setup::Own, 10, 2);
        figure.accept_per_s = Some(5000.0);

        let written = serde_json::to_value(&figure).unwrap();

        assert_eq!(written["bench"], "ingest");
        assert_eq!(written["setup"], "own");
        assert_eq!(written["accept_per_s"], 5000.0);
        assert!(written.get("deliver_per_s").is_none());
        assert!(written.get("lost").is_none());
    }
}
