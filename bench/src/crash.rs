//! Whether anything is lost when processes are killed and Redis forgets, under load.

use std::time::Duration;

use posthaste_jobs::Clock;
use tokio::time::{Instant, sleep};

use crate::Kept;
use crate::args::{Crash, Setup};
use crate::figures::{Figure, note, rounded};
use crate::messages::Scheme;
use crate::system::System;
use crate::tally::Tally;
use crate::trial::{PATIENCE, Plan, Route, Trial};

/// How long a killed process stays away.
const AWAY: Duration = Duration::from_secs(1);

/// How long a second delivery is waited for: longer than a lease, after which a job that nobody
/// is known to hold is run again.
const SECOND_DELIVERY: Duration = Duration::from_secs(15);

/// Takes a figure of each set-up.
pub(crate) async fn run(options: &Crash, clock: &Clock) -> anyhow::Result<Kept> {
    let mut kept = Kept::All;
    for setup in options.common.setup.setups() {
        let figure = figure(options, *setup, clock).await?;
        figure.print()?;
        kept = kept.and(figure.kept());
    }
    Ok(kept)
}

async fn figure(options: &Crash, setup: Setup, clock: &Clock) -> anyhow::Result<Figure> {
    note(&format!("crash: set-up {setup}, {} kills", options.kills));
    let plan = Plan {
        setup,
        scheme: Scheme::Github,
        connections: options.connections,
        events: options.events,
        rate: Some(options.rate),
        route: Route::ToReceiver,
    };
    let mut trial = Trial::start(&options.common, plan, clock()).await?;

    let blows = blows(setup, options.kills, trial.measured.len());
    let load = trial.load.run(trial.measured.clone());
    let strike = strike(&mut trial.system, &trial.tally, trial.measured.start, &blows);
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
    let recovered = struck.into_iter().map(|blow| trial.tally.recovery(blow)).max();
    let mut figure = Figure::new("crash", setup, trial.measured.len(), options.connections);
    figure.rate = Some(options.rate);
    figure.accepted = Some(summary.accepted);
    figure.delivered = Some(summary.delivered);
    figure.lost = Some(summary.lost);
    figure.delivered_twice = Some(summary.delivered_twice);
    figure.recovered_within_s = recovered.map(|longest| rounded(longest.as_secs_f64(), 2));
    figure.rss_mb = trial.system.peak_memory();
    Ok(figure)
}

/// Something bad that happens once so many events are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Blow {
    after: usize,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// `kill -9` of the process in this role, which is started again a second later.
    Kill(&'static str),
    /// Redis forgets everything.
    Flush,
}

/// Returns the kills, evenly over the events and by turns over the roles, and where there is a
/// Redis its flush in the middle.
fn blows(setup: Setup, kills: u32, events: usize) -> Vec<Blow> {
    let roles: &[&'static str] = match setup {
        Setup::Own => &["up"],
        Setup::Scaled => &["ingress", "workers"],
    };
    let kill = |(position, role): (usize, &&'static str)| Blow {
        after: events * (position + 1) / (kills as usize + 1),
        what: What::Kill(role),
    };
    let mut blows: Vec<Blow> = roles
        .iter()
        .cycle()
        .take(kills as usize)
        .enumerate()
        .map(kill)
        .collect();
    if setup == Setup::Scaled {
        blows.push(Blow {
            after: events / 2,
            what: What::Flush,
        });
    }
    blows.sort_by_key(|blow| blow.after);
    blows
}

/// Deals the blows, each when its number of events is accepted; returns when each fell.
async fn strike(
    system: &mut System,
    tally: &Tally,
    warm_up: usize,
    blows: &[Blow],
) -> anyhow::Result<Vec<Instant>> {
    let mut struck = Vec::new();
    for blow in blows {
        while tally.progress().accepted < warm_up + blow.after {
            sleep(Duration::from_millis(2)).await;
        }
        struck.push(Instant::now());
        match blow.what {
            What::Kill(role) => {
                note(&format!("after {} events: kill -9 of {role}", blow.after));
                system.kill(role)?;
                sleep(AWAY).await;
                system.run(role)?;
            }
            What::Flush => {
                note(&format!("after {} events: FLUSHALL", blow.after));
                system.flush_queue()?;
            }
        }
    }
    Ok(struck)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_out_the_roles_take_turns_and_redis_forgets_in_the_middle() {
        let blows = blows(Setup::Scaled, 4, 10_000);

        let expected = [
            (2000, What::Kill("ingress")),
            (4000, What::Kill("workers")),
            (5000, What::Flush),
            (6000, What::Kill("ingress")),
            (8000, What::Kill("workers")),
        ];
        assert_eq!(blows, expected.map(|(after, what)| Blow { after, what }));
    }

    #[test]
    fn on_its_own_there_is_one_process_and_no_redis() {
        let blows = blows(Setup::Own, 1, 100);

        assert_eq!(
            blows,
            [Blow {
                after: 50,
                what: What::Kill("up")
            }]
        );
    }
}
