//! Measures the whole: the released binary as its users run it, against servers started for
//! the purpose. And the queue alone, through its crate.
//!
//! Prints one JSON object a line on stdout for each figure, and everything else on stderr.
//! Exits 0, or 1 when something was lost or could not be measured. What each benchmark does
//! and how to read it stands in `docs/benchmarks.md`.

mod args;
mod binary;
mod blow;
mod configuration;
mod crash;
mod end_to_end;
mod figures;
mod fleet;
mod ingest;
mod load;
mod messages;
mod neighbours;
mod percentiles;
mod plan;
mod postgres;
mod process;
mod queue;
mod receiver;
mod recovery;
mod redis;
mod restart;
mod schedule;
mod scratch;
mod standing;
mod system;
mod tally;
mod trial;
mod usage;
mod wire;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use clap::Parser;
use posthaste_jobs::Clock;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Args, Benchmark};
use crate::figures::note;

fn main() -> ExitCode {
    let args = Args::parse();
    let mut runtime = match args.benchmark {
        // What is measured runs in here, as it does in the product.
        Benchmark::Queue(_) => Builder::new_multi_thread(),
        // One thread for sender and receiver: they share the cores with what they measure.
        _ => Builder::new_current_thread(),
    };
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            note(&format!("error: the runtime did not start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run_until_stopped(&args)) {
        Ok(Kept::All) => ExitCode::SUCCESS,
        Ok(Kept::NotAll) => ExitCode::FAILURE,
        Err(error) => {
            note(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Whether what is promised was kept: nothing lost above all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    All,
    NotAll,
}

impl Kept {
    /// Returns `All` if `kept`.
    fn when(kept: bool) -> Self {
        if kept { Self::All } else { Self::NotAll }
    }

    /// Returns `All` only if both are.
    fn and(self, other: Self) -> Self {
        if self == Self::All { other } else { self }
    }
}

/// Runs the benchmark; a signal drops it, and what is dropped stops its children.
async fn run_until_stopped(args: &Args) -> anyhow::Result<Kept> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::select! {
        outcome = run(args) => outcome,
        _ = interrupt.recv() => anyhow::bail!("interrupted"),
        _ = terminate.recv() => anyhow::bail!("terminated"),
        _ = hangup.recv() => anyhow::bail!("hung up"),
    }
}

async fn run(args: &Args) -> anyhow::Result<Kept> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge, where the clock is handed out"
    )]
    let clock: Clock = Arc::new(|| SystemTime::now().into());
    match &args.benchmark {
        Benchmark::Ingest(options) => ingest::run(options, &clock).await,
        Benchmark::EndToEnd(options) => end_to_end::run(options, &clock).await,
        Benchmark::Crash(options) => crash::run(options, &clock).await,
        Benchmark::Queue(options) => queue::run(options, &clock).await,
        Benchmark::Restart(options) => restart::run(options, &clock).await,
        Benchmark::Neighbours(options) => neighbours::run(options, &clock).await,
        Benchmark::Recovery(options) => recovery::run(options, &clock).await,
    }
}
