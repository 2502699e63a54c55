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
mod peer;
mod peers;
mod rate;
mod wake_up;
mod work;

use std::io;

use posthaste_jobs::Clock;

use crate::Kept;
use crate::figures::{note, print};

use line::Line;
pub(crate) use options::Options;
use options::{Engine, Measure, Task};

/// Takes the figures asked for.
pub(crate) async fn run(options: &Options, clock: &Clock) -> anyhow::Result<Kept> {
    match options.task() {
        Task::Measure(measures) => {
            for engine in options.engine.engines() {
                for measure in measures {
                    note(&format!("queue: {}, {}", engine.name(), measure.name()));
                    print_all(lines(options, *engine, *measure, clock).await?)?;
                }
            }
        }
        Task::CompareWithAny => print_all(peers::compare_with_any(options, clock).await?)?,
        Task::Compare(peers) => print_all(peers::compare_with(options, peers, clock).await?)?,
    }
    Ok(Kept::All)
}

fn print_all(lines: Vec<Line>) -> io::Result<()> {
    lines.iter().try_for_each(print)
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
