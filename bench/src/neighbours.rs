//! What one endpoint that hangs costs the others.

use std::time::Duration;

use anyhow::ensure;
use posthaste_jobs::Clock;
use tokio::time::{Instant, sleep};

use crate::Kept;
use crate::args::{Neighbours, Setup};
use crate::configuration::MAX_IN_FLIGHT;
use crate::figures::{Figure, note, rounded};
use crate::fleet::Fleet;
use crate::plan::{Plan, Route};
use crate::trial::{PATIENCE, Trial};

/// How long the one endpoint holds each call.
const HANGS_FOR: Duration = Duration::from_secs(30);
/// How long it has hung when the others are measured beside it. At first its jobs come back every
/// second or so to see whether there is room; after that, every half a minute.
const HUNG_FOR: Duration = Duration::from_secs(10);
/// Speed beside it, as a share of the speed without it, that is no failure.
const LEAST_RATIO: f64 = 0.9;
/// Turns of each round: alone, beside it, beside it, alone. What drifts, drifts for both.
const TURNS: usize = 4;

/// Takes a figure of each set-up.
pub(crate) async fn run(options: &Neighbours, clock: &Clock) -> anyhow::Result<Kept> {
    let mut kept = Kept::All;
    for setup in options.common.setup.setups() {
        kept = kept.and(figure(options, *setup, clock).await?);
    }
    Ok(kept)
}

async fn figure(options: &Neighbours, setup: Setup, clock: &Clock) -> anyhow::Result<Kept> {
    note(&format!(
        "neighbours: set-up {setup}, {} workers, {} rounds",
        options.workers, options.rounds
    ));
    let (events, rounds) = (options.events as usize, options.rounds as usize);
    let hanging = options.hanging as usize;
    let route = Route::ToNeighbours {
        hanging: options.hanging * options.rounds,
    };
    let all = options.events * options.rounds * TURNS as u32;
    let mut plan = Plan::new(setup, options.connections, all, route);
    plan.fleet = Fleet::new(setup, 1, options.workers);

    let trial = Trial::start(&options.common, plan, clock()).await?;
    let mut times = Times::default();
    for round in 0..rounds {
        let turn = |number: usize| trial.measured.start + (round * TURNS + number) * events;
        times.alone += send(&trial, turn(0), events).await?;

        let aside = trial.aside.start + round * hanging;
        hang(&trial, aside, hanging).await?;
        times.beside += send(&trial, turn(1), events).await?;
        times.beside += send(&trial, turn(2), events).await?;
        trial.hold_aside.send_replace(Duration::ZERO);
        trial.tally.wait_for(aside..aside + hanging, PATIENCE).await;

        times.alone += send(&trial, turn(3), events).await?;
        note(&format!("round {}: ratio {:.3} so far", round + 1, times.ratio()));
    }

    let summary = trial.tally.summary(trial.measured.start..trial.aside.end)?;
    if summary.lost > 0 {
        trial.system.show_logs();
    }
    let turns = (rounds * TURNS / 2 * events) as f64;
    let ratio = times.ratio();
    let mut figure = Figure::new("neighbours", setup, trial.measured.len(), options.connections);
    figure.workers = Some(trial.system.working().len());
    figure.alone_per_s = Some(rounded(turns / times.alone.as_secs_f64(), 0));
    figure.beside_per_s = Some(rounded(turns / times.beside.as_secs_f64(), 0));
    figure.ratio = Some(rounded(ratio, 3));
    figure.accepted = Some(summary.accepted);
    figure.delivered = Some(summary.delivered);
    figure.lost = Some(summary.lost);
    figure.delivered_twice = Some(summary.delivered_twice);
    figure.rss_mb = trial.system.peak_memory();
    figure.print()?;
    Ok(figure.kept().and(Kept::when(ratio >= LEAST_RATIO)))
}

/// How long all turns took.
#[derive(Debug, Default)]
struct Times {
    alone: Duration,
    beside: Duration,
}

impl Times {
    fn ratio(&self) -> f64 {
        self.alone.as_secs_f64() / self.beside.as_secs_f64()
    }
}

/// Sends events to the endpoints that are well; returns how long it took until the last arrived.
async fn send(trial: &Trial, first: usize, events: usize) -> anyhow::Result<Duration> {
    let numbers = first..first + events;
    trial.load.run(numbers.clone()).await?;
    trial.tally.wait_for(numbers.clone(), PATIENCE).await;
    let summary = trial.tally.summary(numbers)?;
    ensure!(summary.lost == 0, "{} events did not arrive", summary.lost);
    Ok(Duration::from_secs_f64(events as f64 / summary.deliver_per_s))
}

/// Sends events to the endpoint that hangs; returns once every process has had as many calls under
/// way as it may, for a while.
async fn hang(trial: &Trial, first: usize, events: usize) -> anyhow::Result<()> {
    let numbers = first..first + events;
    let limit = trial.system.working().len() * MAX_IN_FLIGHT as usize;
    trial.hold_aside.send_replace(HANGS_FOR);
    trial.load.run(numbers.clone()).await?;
    let start = Instant::now();
    while trial.tally.arrived(numbers.clone()) < limit {
        ensure!(
            start.elapsed() < PATIENCE,
            "only {} of {limit} calls are under way",
            trial.tally.arrived(numbers)
        );
        sleep(Duration::from_millis(20)).await;
    }
    sleep(HUNG_FOR).await;
    Ok(())
}
