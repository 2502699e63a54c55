//! What a rolling restart of the processes that run jobs costs, under load: nothing should be
//! lost or delivered twice, and deliveries should not pause for a second.

use std::time::Duration;

use posthaste_jobs::Clock;
use tokio::time::{Instant, sleep, sleep_until};

use crate::Kept;
use crate::args::{Restart, Setup};
use crate::blow::Blow;
use crate::figures::{Figure, note, rounded};
use crate::fleet::Fleet;
use crate::plan::{Plan, Route};
use crate::system::System;
use crate::trial::{PATIENCE, Trial};

/// How long the receiver takes to answer, so that each restart finds deliveries under way.
const ANSWERS_AFTER: Duration = Duration::from_millis(20);
/// How long a second delivery is waited for: longer than a lease.
const SECOND_DELIVERY: Duration = Duration::from_secs(15);
/// Longest pause of the deliveries that is no failure.
const LONGEST_GAP: Duration = Duration::from_secs(1);

/// Takes a figure of each set-up.
pub(crate) async fn run(options: &Restart, clock: &Clock) -> anyhow::Result<Kept> {
    let mut kept = Kept::All;
    for setup in options.common.setup.setups() {
        kept = kept.and(figure(options, *setup, clock).await?);
    }
    Ok(kept)
}

async fn figure(options: &Restart, setup: Setup, clock: &Clock) -> anyhow::Result<Kept> {
    note(&format!(
        "restart: set-up {setup}, {} rounds over {} workers",
        options.rounds, options.workers
    ));
    let mut plan = Plan::new(setup, options.connections, options.events, Route::ToReceiver);
    plan.fleet = Fleet::new(setup, 1, options.workers);
    plan.rate = Some(options.rate);
    let lasts = Duration::from_secs_f64(f64::from(options.events) / f64::from(options.rate));

    let mut trial = Trial::start(&options.common, plan, clock()).await?;
    trial.hold.send_replace(ANSWERS_AFTER);
    let load = trial.load.run(trial.measured.clone());
    let restart = restart(&mut trial.system, options.rounds, lasts);
    let restarts = match tokio::try_join!(load, restart) {
        Ok(((), restarts)) => restarts,
        Err(error) => {
            trial.system.show_logs();
            return Err(error);
        }
    };
    trial.tally.wait_for_deliveries(PATIENCE).await;
    sleep(SECOND_DELIVERY).await;

    let summary = trial.tally.summary(trial.measured.clone())?;
    let gap = trial.tally.longest_gap(trial.measured.clone());
    if summary.lost > 0 || summary.delivered_twice > 0 {
        trial.system.show_logs();
    }
    let mut figure = Figure::new("restart", setup, trial.measured.len(), options.connections);
    figure.rate = Some(options.rate);
    figure.restarts = Some(restarts);
    figure.deliver_per_s = Some(rounded(summary.deliver_per_s, 0));
    figure.p50_ms = summary.deliveries.millis(50);
    figure.p99_ms = summary.deliveries.millis(99);
    figure.longest_gap_ms = Some(rounded(gap.as_secs_f64() * 1000.0, 0));
    figure.accepted = Some(summary.accepted);
    figure.delivered = Some(summary.delivered);
    figure.lost = Some(summary.lost);
    figure.delivered_twice = Some(summary.delivered_twice);
    figure.rss_mb = trial.system.peak_memory();
    figure.print()?;
    Ok(figure
        .kept()
        .and(Kept::when(summary.delivered_twice == 0 && gap <= LONGEST_GAP)))
}

/// Restarts in rounds, evenly over the load; returns how many processes were.
async fn restart(system: &mut System, rounds: u32, load: Duration) -> anyhow::Result<usize> {
    let start = Instant::now();
    let mut restarts = 0;
    for round in 1..=rounds {
        sleep_until(start + load * round / (rounds + 1)).await;
        let began = Instant::now();
        Blow::RollingRestart.begin(system).await?;
        restarts += system.working().len();
        note(&format!("round {round} took {} ms", began.elapsed().as_millis()));
    }
    Ok(restarts)
}
