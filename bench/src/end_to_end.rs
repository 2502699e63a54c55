//! Events that go all the way in a second, and how long each takes from sender to receiver.

use std::time::Duration;

use posthaste_jobs::Clock;
use tokio::time::sleep;

use crate::Kept;
use crate::args::{EndToEnd, Setup};
use crate::figures::{Figure, note, rounded};
use crate::plan::{Plan, Route};
use crate::trial::{PATIENCE, Trial};

/// How long a second delivery is waited for: longer than the relay leaves a job alone.
pub(crate) const SECOND_DELIVERY: Duration = Duration::from_secs(5);

/// Takes a figure of each set-up at each number of connections.
pub(crate) async fn run(options: &EndToEnd, clock: &Clock) -> anyhow::Result<Kept> {
    let mut kept = Kept::All;
    for setup in options.common.setup.setups() {
        for connections in &options.connections {
            let figure = figure(options, *setup, *connections, clock).await?;
            figure.print()?;
            kept = kept.and(figure.kept());
        }
    }
    Ok(kept)
}

async fn figure(options: &EndToEnd, setup: Setup, connections: u16, clock: &Clock) -> anyhow::Result<Figure> {
    note(&format!("end-to-end: set-up {setup}, {connections} connections"));
    let mut plan = Plan::new(setup, connections, options.events, Route::ToReceiver);
    plan.rate = options.rate;
    let trial = Trial::start(&options.common, plan, clock()).await?;

    let before = trial.system.processor_time();
    trial.run().await?;
    trial.tally.wait_for_deliveries(PATIENCE).await;
    let after = trial.system.processor_time();
    sleep(SECOND_DELIVERY).await;

    let summary = trial.tally.summary(trial.measured.clone())?;
    if summary.lost > 0 {
        trial.system.show_logs();
    }
    let mut figure = Figure::new("end-to-end", setup, trial.measured.len(), connections);
    figure.rate = options.rate;
    figure.accept_per_s = Some(rounded(summary.accept_per_s, 0));
    figure.deliver_per_s = Some(rounded(summary.deliver_per_s, 0));
    figure.p50_ms = summary.deliveries.millis(50);
    figure.p99_ms = summary.deliveries.millis(99);
    figure.accept_p50_ms = summary.accepts.millis(50);
    figure.accept_p99_ms = summary.accepts.millis(99);
    figure.accepted = Some(summary.accepted);
    figure.delivered = Some(summary.delivered);
    figure.lost = Some(summary.lost);
    figure.delivered_twice = Some(summary.delivered_twice);
    figure.rss_mb = trial.system.peak_memory();
    figure.cpu_ms_per_event = trial.cost(&before, &after);
    Ok(figure)
}
