//! What a waiting job takes of Redis' memory, and whether anything stays when all are done.

use std::sync::Arc;

use posthaste_jobs::Clock;

use super::crew::Crew;
use super::ground::{Ground, ids};
use super::latch::Latch;
use super::line::Line;
use super::options::{Engine, Measure, Options};
use super::rate;
use super::work::Work;
use crate::figures::rounded;

const JOBS: usize = 1_000_000;
const MIB: f64 = 1024.0 * 1024.0;

/// Returns nothing for the engine in the process, whose memory is that of the process.
pub(super) async fn measure(
    options: &Options,
    engine: Engine,
    clock: &Clock,
) -> anyhow::Result<Option<Line>> {
    if engine == Engine::Local {
        return Ok(None);
    }
    let ground = Ground::start(options, engine).await?;
    let redis = ground.redis()?;
    let latch = Arc::new(Latch::new(JOBS));
    rate::warm_up(options, &ground, clock).await?;

    let idle = redis.used_memory()? as f64;
    ground.push(&ids(JOBS, clock)).await?;
    let full = redis.used_memory()? as f64;
    let keys = redis.memory_of_keys()? as f64;
    let crew = Crew::start(&ground.queue, options, Work::Nothing(Arc::clone(&latch)));
    latch.opened().await?;
    crew.until_empty().await?;
    crew.stop().await;
    let after = redis.used_memory()? as f64;

    let mut line = Line::new(options, engine, Measure::Memory.name(), JOBS);
    line.bytes_per_job = Some(rounded((full - idle) / JOBS as f64, 1));
    line.key_bytes_per_job = Some(rounded(keys / JOBS as f64, 1));
    line.idle_mb = Some(rounded(idle / MIB, 2));
    line.after_mb = Some(rounded(after / MIB, 2));
    Ok(Some(line))
}
