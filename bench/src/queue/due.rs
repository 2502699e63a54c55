//! Many jobs that become due in the same moment: that all run, and how long the last takes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use posthaste_jobs::{Clock, Lane};
use posthaste_queue::Entry;
use tokio::time::Instant;

use super::crew::Crew;
use super::ground::{Ground, PUSH, ids};
use super::latch::Latch;
use super::line::Line;
use super::options::{Engine, Measure, Options};
use super::work::Work;
use crate::figures::rounded;

/// One more than a queue dies of that promotes all that is due in one step; and very many.
const JOBS: [usize; 2] = [8_001, 100_000];
/// How long until they are due: longer than it takes to push them.
const AHEAD: Duration = Duration::from_secs(3);

pub(super) async fn measure(options: &Options, engine: Engine, clock: &Clock) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for jobs in JOBS {
        let ground = Ground::start(options, engine).await?;
        let latch = Arc::new(Latch::new(jobs));
        let crew = Crew::start(&ground.queue, options, Work::Nothing(Arc::clone(&latch)));

        let due = Instant::now() + AHEAD;
        for batch in ids(jobs, clock).chunks(PUSH) {
            let wait = due - Instant::now();
            let entry = |job: &_| Entry {
                wait,
                ..Entry::due(*job, Lane::Normal)
            };
            let entries: Vec<Entry> = batch.iter().map(entry).collect();
            ground.queue.push(&entries).await?;
        }
        ensure!(Instant::now() < due, "the push took longer than the jobs waited");
        let (_, last) = latch.opened().await?;
        crew.until_empty().await?;
        crew.stop().await;
        latch.ensure_none_twice()?;

        let mut line = Line::new(options, engine, Measure::Due.name(), jobs);
        line.drained_within_s = Some(rounded((last - due).as_secs_f64(), 3));
        lines.push(line);
    }
    Ok(lines)
}
