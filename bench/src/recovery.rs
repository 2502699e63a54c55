//! How long a Redis that has forgotten everything takes to hold it again.

use std::time::Duration;

use anyhow::ensure;
use posthaste_jobs::Clock;
use tokio::time::{Instant, sleep};

use crate::Kept;
use crate::args::{Recovery, Setup};
use crate::blow::Blow;
use crate::figures::{Figure, note, rounded};
use crate::plan::{Plan, Route};
use crate::trial::{PATIENCE, Trial};

/// How often the queue is asked what it holds. Asking counts every job, so it costs something.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Takes two figures: the jobs are delivered after a `FLUSHALL`, and without one.
pub(crate) async fn run(options: &Recovery, clock: &Clock) -> anyhow::Result<Kept> {
    ensure!(
        options.common.setup.setups().contains(&Setup::Scaled),
        "only the set-up scaled has a Redis that can forget"
    );
    let mut kept = Kept::All;
    for blow in [None, Some(Blow::Flush)] {
        let figure = figure(options, blow, clock).await?;
        figure.print()?;
        kept = kept.and(figure.kept());
    }
    Ok(kept)
}

async fn figure(options: &Recovery, blow: Option<Blow>, clock: &Clock) -> anyhow::Result<Figure> {
    let name = blow.map_or("none", Blow::name);
    note(&format!("recovery: {} jobs, blow: {name}", options.jobs));
    let plan = Plan::new(
        Setup::Scaled,
        options.connections,
        options.jobs,
        Route::ToReceiver,
    );
    let jobs = options.jobs as usize;

    let mut trial = Trial::start(&options.common, plan, clock()).await?;
    trial.system.operate(&["queues", "pause", "webhooks"]).await?;
    trial.run().await?;
    until_held(&trial, jobs).await?;

    let began = Instant::now();
    let mut requeued = None;
    if let Some(blow) = blow {
        blow.begin(&mut trial.system).await?;
        until_held(&trial, jobs).await?;
        requeued = Some(began.elapsed());
    }
    trial.system.operate(&["queues", "resume", "webhooks"]).await?;
    trial.tally.wait_for_deliveries(PATIENCE).await;
    let delivered = began.elapsed();
    sleep(crate::end_to_end::SECOND_DELIVERY).await;

    let summary = trial.tally.summary(trial.measured.clone())?;
    if summary.lost > 0 {
        trial.system.show_logs();
    }
    let mut figure = Figure::new("recovery", Setup::Scaled, jobs, options.connections);
    figure.blow = Some(name);
    figure.requeued_within_s = requeued.map(|took| rounded(took.as_secs_f64(), 2));
    figure.delivered_within_s = Some(rounded(delivered.as_secs_f64(), 2));
    figure.accepted = Some(summary.accepted);
    figure.delivered = Some(summary.delivered);
    figure.lost = Some(summary.lost);
    figure.delivered_twice = Some(summary.delivered_twice);
    figure.rss_mb = trial.system.peak_memory();
    Ok(figure)
}

/// Waits until the queue holds so many jobs.
async fn until_held(trial: &Trial, jobs: usize) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let held = trial.system.standing().await?.held();
        if held >= jobs {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            trial.system.show_logs();
            anyhow::bail!(
                "after {}s the queue holds {held} of {jobs} jobs",
                PATIENCE.as_secs()
            );
        }
        sleep(LOOK_AGAIN).await;
    }
}
