use std::time::Duration;

use anyhow::bail;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::args::Setup;
use crate::blow::Blow;
use crate::fleet::{Fleet, Member, Role};

/// Which blows fall, and how long it is quiet before each. One falls at a time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) blows: Vec<(Duration, Blow)>,
}

impl Schedule {
    /// Draws one of so many kills, in rotation over all that can be killed, and in the scaled set-up
    /// each other blow once among them. All moments within `load` are as likely as any.
    ///
    /// # Errors
    ///
    /// All together they last longer than the load.
    pub(crate) fn draw(
        setup: Setup,
        fleet: Fleet,
        kills: usize,
        load: Duration,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let mut chance = StdRng::seed_from_u64(seed);
        let mut blows: Vec<Blow> = victims(setup, fleet).into_iter().cycle().take(kills).collect();
        for blow in others(setup, fleet, &mut chance) {
            let position = chance.random_range(0..=blows.len());
            blows.insert(position, blow);
        }

        let lasting: Duration = blows.iter().map(|blow| blow.lasts()).sum();
        let Some(quiet) = load.checked_sub(lasting) else {
            bail!(
                "the blows last {}s together, and the load only {}s\n\
                 hint: fewer --kills, more --events, or a lower --rate",
                lasting.as_secs(),
                load.as_secs()
            );
        };
        let mut moments: Vec<Duration> = blows.iter().map(|_| quiet.mul_f64(chance.random())).collect();
        moments.sort_unstable();
        let mut before = Duration::ZERO;
        let blows = moments.into_iter().zip(blows).map(|(moment, blow)| {
            let gap = moment - before;
            before = moment;
            (gap, blow)
        });
        Ok(Self {
            blows: blows.collect(),
        })
    }
}

/// Returns what is killed, in the order of the rotation.
fn victims(setup: Setup, fleet: Fleet) -> Vec<Blow> {
    let member = |role, number| Blow::Kill(Member { role, number });
    match setup {
        Setup::Own => vec![member(Role::Up, 1)],
        Setup::Scaled => (1..=fleet.ingress.max(fleet.workers))
            .flat_map(|number| {
                [
                    member(Role::Ingress, number.min(fleet.ingress)),
                    member(Role::Workers, number.min(fleet.workers)),
                    Blow::KillRedis,
                    Blow::KillPostgres,
                ]
            })
            .collect(),
    }
}

/// Returns what falls once.
fn others(setup: Setup, fleet: Fleet, chance: &mut StdRng) -> Vec<Blow> {
    match setup {
        Setup::Own => Vec::new(),
        Setup::Scaled => vec![
            Blow::Flush,
            Blow::PauseClients,
            Blow::FreezeRedis,
            Blow::Freeze(Member {
                role: Role::Workers,
                number: chance.random_range(1..=fleet.workers),
            }),
            Blow::ReadOnly,
            Blow::Full,
            Blow::RollingRestart,
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Duration = Duration::from_secs(250);

    fn draw(setup: Setup, kills: usize, seed: u64) -> Schedule {
        Schedule::draw(setup, Fleet::new(setup, 2, 2), kills, LOAD, seed).unwrap()
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_does_not() {
        assert_eq!(draw(Setup::Scaled, 30, 7), draw(Setup::Scaled, 30, 7));
        assert_ne!(draw(Setup::Scaled, 30, 7), draw(Setup::Scaled, 30, 8));
    }

    #[test]
    fn scaled_out_everybody_is_killed_in_turn_and_each_other_blow_falls_once() {
        let schedule = draw(Setup::Scaled, 30, 7);
        let count = |name| {
            let named = schedule.blows.iter().filter(|(_, blow)| blow.name() == name);
            named.count()
        };

        for (name, times) in [
            ("kill-ingress", 8),
            ("kill-workers", 8),
            ("kill-redis", 7),
            ("kill-postgres", 7),
            ("flushall", 1),
            ("client-pause", 1),
            ("stop-redis", 1),
            ("stop-workers", 1),
            ("replicaof", 1),
            ("maxmemory", 1),
            ("rolling-restart", 1),
        ] {
            assert_eq!(count(name), times, "{name}");
        }
    }

    #[test]
    fn on_its_own_the_one_process_is_killed() {
        let schedule = draw(Setup::Own, 3, 7);

        let names: Vec<_> = schedule.blows.iter().map(|(_, blow)| blow.name()).collect();
        assert_eq!(names, ["kill-up"; 3]);
    }

    #[test]
    fn all_is_over_within_the_load() {
        for seed in 0..100 {
            let schedule = draw(Setup::Scaled, 30, seed);

            let took: Duration = schedule.blows.iter().map(|(gap, blow)| *gap + blow.lasts()).sum();
            assert!(took <= LOAD, "{seed}: {took:?}");
        }
    }

    #[test]
    fn blows_that_outlast_the_load_are_refused() {
        let fleet = Fleet::new(Setup::Own, 0, 0);
        let draw = |kills| Schedule::draw(Setup::Own, fleet, kills, Duration::from_secs(5), 1);

        assert!(draw(5).is_ok());
        assert!(draw(6).is_err());
    }
}
