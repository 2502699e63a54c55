//! Pushes a second without a worker, then handlers that do nothing a second without a push.

use std::sync::Arc;

use posthaste_jobs::Clock;
use tokio::time::Instant;

use super::crew::Crew;
use super::ground::{Ground, ids};
use super::latch::Latch;
use super::line::Line;
use super::options::{Engine, Measure, Options};
use super::work::Work;
use crate::figures::rounded;

/// Jobs that go through before the clock starts.
const WARM_UP: usize = 5_000;

pub(super) async fn measure(options: &Options, engine: Engine, clock: &Clock) -> anyhow::Result<Line> {
    let ground = Ground::start(options, engine).await?;
    let jobs = options.jobs as usize;
    warm_up(options, &ground, clock).await?;
    let (push_per_s, consume_per_s) = once(options, &ground, jobs, clock).await?;
    let mut line = Line::new(options, engine, Measure::Rate.name(), jobs);
    line.push_per_s = Some(rounded(push_per_s, 0));
    line.consume_per_s = Some(rounded(consume_per_s, 0));
    Ok(line)
}

/// Has some jobs go through: connections are opened, scripts loaded.
pub(super) async fn warm_up(options: &Options, ground: &Ground, clock: &Clock) -> anyhow::Result<()> {
    once(options, ground, WARM_UP, clock).await.map(drop)
}

/// Pushes and consumes so many, and returns how many of each a second.
pub(super) async fn once(
    options: &Options,
    ground: &Ground,
    jobs: usize,
    clock: &Clock,
) -> anyhow::Result<(f64, f64)> {
    let pushed = ground.push(&ids(jobs, clock)).await?;

    let latch = Arc::new(Latch::new(jobs));
    let start = Instant::now();
    let crew = Crew::start(&ground.queue, options, Work::Nothing(Arc::clone(&latch)));
    latch.opened().await?;
    crew.until_empty().await?;
    let consumed = start.elapsed();
    crew.stop().await;
    latch.ensure_none_twice()?;

    let count = jobs as f64;
    Ok((count / pushed.as_secs_f64(), count / consumed.as_secs_f64()))
}
