//! The queue alone, through its crate: how fast ids go in and out, how soon an idle worker begins, what an id weighs.
//!
//! Each figure has a queue of its own, on Redis on a server of its own.

mod backlog;
mod crew;
mod due;
mod ground;
mod latch;
mod ledger;
mod line;
mod memory;
mod options;
mod rate;
mod wake_up;
mod work;

use posthaste_jobs::Clock;

use crate::Kept;
use crate::figures::{note, print};

use line::Line;
pub(crate) use options::Options;
use options::{Engine, Measure};

/// Takes the figures asked for, of each engine.
pub(crate) async fn run(options: &Options, clock: &Clock) -> anyhow::Result<Kept> {
    for engine in options.engine.engines() {
        for measure in &options.measure {
            note(&format!("queue: {measure:?} on {engine:?}"));
            for line in lines(options, *engine, *measure, clock).await? {
                print(&line)?;
            }
        }
    }
    Ok(Kept::All)
}

async fn lines(
    options: &Options,
    engine: Engine,
    measure: Measure,
    clock: &Clock,
) -> anyhow::Result<Vec<Line>> {
    match measure {
        Measure::Rate => Ok(vec![rate::measure(options, engine, clock).await?]),
        Measure::Ledger => Ok(vec![ledger::measure(options, engine, clock).await?]),
        Measure::WakeUp => Ok(vec![wake_up::measure(options, engine, clock).await?]),
        Measure::Memory => Ok(memory::measure(options, engine, clock)
            .await?
            .into_iter()
            .collect()),
        Measure::Backlog => backlog::measure(options, engine, clock).await,
        Measure::Due => due::measure(options, engine, clock).await,
    }
}
