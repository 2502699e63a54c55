//! Whether anything is lost, or delivered more often than must be, when everything that can die
//! dies under load.

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_jobs::Clock;
use tokio::time::{Instant, sleep};

use crate::Kept;
use crate::args::{Crash, Setup};
use crate::blow::Blow;
use crate::figures::{Figure, note, rounded};
use crate::fleet::Fleet;
use crate::plan::{Plan, Route};
use crate::redis::Persistence;
use crate::schedule::Schedule;
use crate::system::System;
use crate::trial::{PATIENCE, Trial};

/// How long the receiver takes to answer, so that there is something under way at every moment.
const ANSWERS_AFTER: Duration = Duration::from_millis(100);

/// How long a second delivery is waited for: longer than a lease, after which a job that nobody
/// is known to hold is run again.
const SECOND_DELIVERY: Duration = Duration::from_secs(15);

/// Takes a figure of each set-up.
pub(crate) async fn run(options: &Crash, clock: &Clock) -> anyhow::Result<Kept> {
    let seed = options.seed.unwrap_or_else(|| rand::random_range(0..1_000_000));
    let mut kept = Kept::All;
    for setup in options.common.setup.setups() {
        let figure = figure(options, *setup, seed, clock).await?;
        figure.print()?;
        kept = kept.and(figure.kept());
    }
    Ok(kept)
}

async fn figure(options: &Crash, setup: Setup, seed: u64, clock: &Clock) -> anyhow::Result<Figure> {
    note(&format!(
        "crash: set-up {setup}, {} kills, --seed {seed}",
        options.kills
    ));
    let mut plan = Plan::new(setup, options.connections, options.events, Route::ToReceiver);
    plan.fleet = Fleet::new(setup, 2, 2);
    plan.persistence = Persistence::Nothing;
    plan.rate = Some(options.rate);
    let lasts = Duration::from_secs_f64(f64::from(options.events) / f64::from(options.rate));
    let schedule = Schedule::draw(setup, plan.fleet, options.kills as usize, lasts, seed)?;

    let mut trial = Trial::start(&options.common, plan, clock()).await?;
    trial.hold.send_replace(ANSWERS_AFTER);
    let load = trial.load.run(trial.measured.clone());
    let strike = strike(&mut trial.system, &schedule);
    let struck = match tokio::try_join!(load, strike) {
        Ok(((), struck)) => struck,
        Err(error) => {
            trial.system.show_logs();
            return Err(error);
        }
    };
    trial.tally.wait_for_deliveries(PATIENCE).await;
    sleep(SECOND_DELIVERY).await;

    let summary = trial.tally.summary(trial.measured.clone())?;
    if summary.lost > 0 {
        trial.system.show_logs();
    }
    let times: Vec<_> = struck.iter().map(|blow| blow.began..blow.ended).collect();
    let held_up = trial.tally.held_up(&times);
    let mut by_blow = BTreeMap::new();
    for (struck, held) in struck.iter().zip(&held_up) {
        let longest: &mut f64 = by_blow.entry(struck.blow.name()).or_default();
        *longest = longest.max(rounded(held.as_secs_f64(), 2));
    }

    let mut figure = Figure::new("crash", setup, trial.measured.len(), options.connections);
    figure.rate = Some(options.rate);
    figure.seed = Some(seed);
    figure.kills = Some(struck.iter().filter(|struck| struck.blow.kills()).count());
    figure.accepted = Some(summary.accepted);
    figure.delivered = Some(summary.delivered);
    figure.lost = Some(summary.lost);
    figure.delivered_twice = Some(summary.delivered_twice);
    figure.in_flight_at_kills = Some(struck.iter().map(|struck| struck.in_flight).sum());
    figure.recovered_within_s = by_blow.values().copied().reduce(f64::max);
    figure.recovered_by_blow_s = by_blow;
    figure.rss_mb = trial.system.peak_memory();
    Ok(figure)
}

/// A blow that fell.
#[derive(Debug)]
struct Struck {
    blow: Blow,
    began: Instant,
    ended: Instant,
    /// Deliveries that were under way and may have to be made again.
    in_flight: usize,
}

/// Has the blows fall one after the other.
async fn strike(system: &mut System, schedule: &Schedule) -> anyhow::Result<Vec<Struck>> {
    let start = Instant::now();
    let mut struck = Vec::new();
    for (quiet, blow) in &schedule.blows {
        sleep(*quiet).await;
        let began = Instant::now();
        let in_flight = blow.begin(system).await?;
        note(&format!(
            "after {:.1}s: {}, {in_flight} under way",
            start.elapsed().as_secs_f64(),
            blow.name()
        ));
        sleep(blow.lasts()).await;
        blow.end(system).await?;
        struck.push(Struck {
            blow: *blow,
            began,
            ended: Instant::now(),
            in_flight,
        });
    }
    Ok(struck)
}
