//! Our rate on Redis and that of others, by turns on one machine, so that whatever else it does falls on all.

use anyhow::Context as _;
use posthaste_jobs::Clock;

use super::ground::Ground;
use super::line::Line;
use super::options::{Engine, Options};
use super::peer::{Peer, Program};
use super::rate;
use crate::figures::{note, rounded};

/// The name that the figures stand under.
const MEASURE: &str = "peers";
/// Turns that each has; the figure is the middle one.
const TURNS: usize = 3;
/// The most jobs in a turn: others take seconds for them.
const JOBS: usize = 50_000;

/// Compares with all peers that can be had; says which cannot.
pub(super) async fn compare_with_any(options: &Options, clock: &Clock) -> anyhow::Result<Vec<Line>> {
    let mut programs = Vec::new();
    for peer in Peer::ALL {
        match peer.prepare().await {
            Ok(program) => programs.push(program),
            Err(error) => note(&format!("without {}: {error:#}", peer.name())),
        }
    }
    compare(options, &programs, clock).await
}

/// Compares with these.
pub(super) async fn compare_with(
    options: &Options,
    peers: &[Peer],
    clock: &Clock,
) -> anyhow::Result<Vec<Line>> {
    let mut programs = Vec::new();
    for peer in peers {
        programs.push(peer.prepare().await?);
    }
    compare(options, &programs, clock).await
}

async fn compare(options: &Options, programs: &[Program], clock: &Clock) -> anyhow::Result<Vec<Line>> {
    let jobs = JOBS.min(options.jobs as usize);
    let mut ours = Turns::default();
    let mut theirs: Vec<Turns> = programs.iter().map(|_| Turns::default()).collect();
    for turn in 1..=TURNS {
        note(&format!("queue: peers, turn {turn} of {TURNS}"));
        let ground = Ground::start(options, Engine::Redis).await?;
        rate::warm_up(options, &ground, clock).await?;
        let (push_per_s, consume_per_s) = rate::once(options, &ground, jobs, clock).await?;
        ours.add(push_per_s, consume_per_s);
        drop(ground);
        for (program, turns) in programs.iter().zip(&mut theirs) {
            let ground = Ground::start(options, Engine::Redis).await?;
            let rates = program
                .run(&ground.redis()?.url(), jobs, options.concurrency)
                .await?;
            turns.add(rates.push_per_s, rates.consume_per_s);
            turns.version = rates.version;
        }
    }

    let (push_per_s, consume_per_s) = ours.middle()?;
    let mut line = Line::new(options, Engine::Redis, MEASURE, jobs);
    line.push_per_s = Some(rounded(push_per_s, 0));
    line.consume_per_s = Some(rounded(consume_per_s, 0));
    let mut lines = vec![line];
    for (program, turns) in programs.iter().zip(&mut theirs) {
        let (push, consume) = turns.middle()?;
        let mut line = Line::of_peer(options, program.peer, MEASURE, jobs);
        line.version = turns.version.take();
        line.push_per_s = Some(rounded(push, 0));
        line.consume_per_s = Some(rounded(consume, 0));
        line.push_ratio = Some(rounded(push_per_s / push, 1));
        line.consume_ratio = Some(rounded(consume_per_s / consume, 1));
        lines.push(line);
    }
    Ok(lines)
}

/// What one of them reached, turn by turn.
#[derive(Debug, Default)]
struct Turns {
    pushed: Vec<f64>,
    consumed: Vec<f64>,
    version: Option<String>,
}

impl Turns {
    fn add(&mut self, push_per_s: f64, consume_per_s: f64) {
        self.pushed.push(push_per_s);
        self.consumed.push(consume_per_s);
    }

    /// Returns the middle of what was pushed and of what was consumed a second.
    fn middle(&mut self) -> anyhow::Result<(f64, f64)> {
        Ok((middle(&mut self.pushed)?, middle(&mut self.consumed)?))
    }
}

fn middle(rates: &mut [f64]) -> anyhow::Result<f64> {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().context("no turn was taken")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_turn_does_not_move_the_figure() {
        let mut turns = Turns::default();
        for (push, consume) in [(5.0, 50.0), (1.0, 70.0), (6.0, 60.0)] {
            turns.add(push, consume);
        }

        assert_eq!(turns.middle().unwrap(), (5.0, 60.0));
    }
}
