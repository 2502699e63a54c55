//! From the push of one job to the begin of its handler, in a worker that has nothing else to do.

use std::time::Duration;

use anyhow::Context as _;
use posthaste_jobs::{Clock, Lane};
use posthaste_queue::Entry;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::crew::Crew;
use super::ground::{Ground, ids};
use super::line::Line;
use super::options::{Engine, Measure, Options};
use super::work::Work;
use crate::percentiles::Percentiles;

const TIMES: usize = 2_000;
/// Wake-ups that do not count.
const WARM_UP: usize = 50;
/// How long the worker is left alone before the next, at most: the time is drawn, so that it falls in with no timer.
const PAUSE_MS: std::ops::Range<u64> = 3..12;
const LOST: Duration = Duration::from_secs(30);

pub(super) async fn measure(options: &Options, engine: Engine, clock: &Clock) -> anyhow::Result<Line> {
    let ground = Ground::start(options, engine).await?;
    let pusher = ground.elsewhere()?;
    let (sender, mut begun) = mpsc::unbounded_channel();
    let crew = Crew::start(&ground.queue, options, Work::Telling(sender));

    let mut waits = Vec::with_capacity(TIMES);
    for job in ids(WARM_UP + TIMES, clock) {
        sleep(Duration::from_millis(rand::random_range(PAUSE_MS))).await;
        let start = Instant::now();
        pusher.push(&[Entry::due(job, Lane::Normal)]).await?;
        let began = timeout(LOST, begun.recv()).await.context("a job was lost")?;
        waits.push(began.context("the worker ended")?.duration_since(start));
    }
    crew.until_empty().await?;
    crew.stop().await;

    let waits = Percentiles::new(waits.split_off(WARM_UP));
    let mut line = Line::new(options, engine, Measure::WakeUp.name(), TIMES);
    line.wakeup_p50_ms = waits.millis(50);
    line.wakeup_p99_ms = waits.millis(99);
    Ok(line)
}
