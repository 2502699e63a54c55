//! Whether a worker is as fast at the head of a long line as at that of a short one.

use std::sync::Arc;
use std::time::Duration;

use posthaste_jobs::Clock;

use super::crew::Crew;
use super::ground::{Ground, ids};
use super::latch::Latch;
use super::line::Line;
use super::options::{Engine, Measure, Options};
use super::rate;
use super::work::Work;
use crate::figures::rounded;

/// Jobs that a figure is over at least; a shorter line is made several times.
const ENOUGH: usize = 200_000;

pub(super) async fn measure(options: &Options, engine: Engine, clock: &Clock) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut first = None;
    for backlog in &options.backlog {
        let backlog = *backlog as usize;
        let ground = Ground::start(options, engine).await?;
        rate::warm_up(options, &ground, clock).await?;
        let mut spent = Duration::ZERO;
        let rounds = ENOUGH.div_ceil(backlog);
        for _ in 0..rounds {
            spent += drain(options, &ground, backlog, clock).await?;
        }
        let consume_per_s = (backlog * rounds) as f64 / spent.as_secs_f64();
        let mut line = Line::new(options, engine, Measure::Backlog.name(), backlog);
        line.consume_per_s = Some(rounded(consume_per_s, 0));
        line.ratio = Some(rounded(consume_per_s / *first.get_or_insert(consume_per_s), 2));
        lines.push(line);
    }
    Ok(lines)
}

/// Makes the line, and returns how long from the first handler to the last. How long a worker takes to start would weigh
/// on a short line more than on a long one.
async fn drain(
    options: &Options,
    ground: &Ground,
    backlog: usize,
    clock: &Clock,
) -> anyhow::Result<Duration> {
    ground.push(&ids(backlog, clock)).await?;
    let latch = Arc::new(Latch::new(backlog));
    let crew = Crew::start(&ground.queue, options, Work::Nothing(Arc::clone(&latch)));
    let (first, last) = latch.opened().await?;
    crew.until_empty().await?;
    crew.stop().await;
    latch.ensure_none_twice()?;
    Ok(last - first)
}
