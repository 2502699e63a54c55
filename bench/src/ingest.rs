//! Events accepted and durable in a second, and how long their senders wait.
//!
//! The source has no route, so nothing is queued or delivered: this is the way in alone.

use posthaste_jobs::Clock;

use crate::Kept;
use crate::args::{Ingest, Setup};
use crate::figures::{Figure, note, rounded};
use crate::plan::{Plan, Route};
use crate::trial::Trial;

/// Takes a figure of each set-up at each number of connections.
pub(crate) async fn run(options: &Ingest, clock: &Clock) -> anyhow::Result<Kept> {
    for setup in options.common.setup.setups() {
        for connections in &options.connections {
            figure(options, *setup, *connections, clock).await?.print()?;
        }
    }
    Ok(Kept::All)
}

async fn figure(options: &Ingest, setup: Setup, connections: u16, clock: &Clock) -> anyhow::Result<Figure> {
    note(&format!("ingest: set-up {setup}, {connections} connections"));
    let mut plan = Plan::new(setup, connections, options.events, Route::Nowhere);
    plan.scheme = options.scheme;
    // Nothing is delivered, so nobody works.
    plan.fleet.workers = 0;
    let trial = Trial::start(&options.common, plan, clock()).await?;

    let before = trial.system.processor_time();
    trial.run().await?;
    let after = trial.system.processor_time();

    let summary = trial.tally.summary(trial.measured.clone())?;
    let mut figure = Figure::new("ingest", setup, trial.measured.len(), connections);
    figure.scheme = Some(options.scheme);
    figure.accept_per_s = Some(rounded(summary.accept_per_s, 0));
    figure.p50_ms = summary.accepts.millis(50);
    figure.p99_ms = summary.accepts.millis(99);
    figure.accepted = Some(summary.accepted);
    figure.rss_mb = trial.system.peak_memory();
    figure.cpu_ms_per_event = trial.cost(&before, &after);
    Ok(figure)
}
