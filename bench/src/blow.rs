//! What can happen to a running system, and how it passes.

use std::time::Duration;

use crate::fleet::{Member, Role};
use crate::system::System;

/// How long a killed process stays away.
const AWAY: Duration = Duration::from_secs(1);

/// One bad thing. It begins, lasts, and ends by what an operator or a supervisor would do anyway;
/// nothing is done for the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blow {
    /// `kill -9` of one of Posthaste's processes, started again a second later.
    Kill(Member),
    /// `kill -9` of Redis, started again a second later with what it wrote down.
    KillRedis,
    /// `kill -9` of all of PostgreSQL's processes at once, started again a second later.
    KillPostgres,
    /// `FLUSHALL`.
    Flush,
    /// Redis answers nobody (`CLIENT PAUSE`).
    PauseClients,
    /// Redis is stopped by `SIGSTOP`.
    FreezeRedis,
    /// A process that runs jobs is stopped by `SIGSTOP`, for longer than a lease.
    Freeze(Member),
    /// Redis refuses writes, because it is somebody's replica (`REPLICAOF`).
    ReadOnly,
    /// Redis refuses what needs memory (`maxmemory`, `noeviction`).
    Full,
    /// Each process that runs jobs, one after the other, gets its SIGTERM, ends, and is started again.
    RollingRestart,
}

impl Blow {
    /// Returns the name that its figure stands under.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill(Member { role: Role::Up, .. }) => "kill-up",
            Self::Kill(Member {
                role: Role::Ingress, ..
            }) => "kill-ingress",
            Self::Kill(Member {
                role: Role::Workers, ..
            }) => "kill-workers",
            Self::KillRedis => "kill-redis",
            Self::KillPostgres => "kill-postgres",
            Self::Flush => "flushall",
            Self::PauseClients => "client-pause",
            Self::FreezeRedis => "stop-redis",
            Self::Freeze(_) => "stop-workers",
            Self::ReadOnly => "replicaof",
            Self::Full => "maxmemory",
            Self::RollingRestart => "rolling-restart",
        }
    }

    /// Whether it is a `kill -9`.
    pub(crate) fn kills(self) -> bool {
        matches!(self, Self::Kill(_) | Self::KillRedis | Self::KillPostgres)
    }

    /// Returns how long it lasts.
    pub(crate) fn lasts(self) -> Duration {
        match self {
            Self::Kill(_) | Self::KillRedis | Self::KillPostgres => AWAY,
            Self::Flush | Self::RollingRestart => Duration::ZERO,
            Self::PauseClients | Self::ReadOnly | Self::Full => Duration::from_secs(5),
            Self::FreezeRedis => Duration::from_secs(10),
            Self::Freeze(_) => Duration::from_secs(20),
        }
    }

    /// Has it begin; returns how many deliveries were under way that may have to be made again.
    pub(crate) async fn begin(self, system: &mut System) -> anyhow::Result<usize> {
        match self {
            Self::Kill(member) if member.role.works() => {
                let running = frozen(&[member], system).await?;
                system.kill(member)?;
                return Ok(running);
            }
            Self::Freeze(member) => return frozen(&[member], system).await,
            Self::KillPostgres => {
                let working = system.working();
                let running = frozen(&working, system).await?;
                system.postgres()?.kill().await?;
                for member in working {
                    system.thaw(member)?;
                }
                return Ok(running);
            }
            Self::Kill(member) => system.kill(member)?,
            Self::KillRedis => system.redis()?.kill()?,
            Self::Flush => system.redis()?.order("FLUSHALL")?,
            Self::PauseClients => {
                let pause = format!("CLIENT PAUSE {} ALL", self.lasts().as_millis());
                system.redis()?.order(&pause)?;
            }
            Self::FreezeRedis => system.redis()?.process().signal("STOP")?,
            // Nobody listens there, so it never becomes anybody's replica, but it refuses writes.
            Self::ReadOnly => system.redis()?.order("REPLICAOF 127.0.0.1 1")?,
            Self::Full => {
                let redis = system.redis()?;
                redis.order("CONFIG SET maxmemory-policy noeviction")?;
                redis.order("CONFIG SET maxmemory 1")?;
            }
            Self::RollingRestart => {
                for member in system.working() {
                    system.stop(member).await?;
                    system.run(member)?;
                }
            }
        }
        Ok(0)
    }

    /// Has it end.
    pub(crate) async fn end(self, system: &mut System) -> anyhow::Result<()> {
        match self {
            Self::Kill(member) => system.run(member),
            Self::KillRedis | Self::KillPostgres => system.start_servers().await,
            Self::FreezeRedis => system.redis()?.process().signal("CONT"),
            Self::Freeze(member) => system.thaw(member),
            Self::ReadOnly => system.redis()?.order("REPLICAOF NO ONE"),
            Self::Full => system.redis()?.order("CONFIG SET maxmemory 0"),
            Self::Flush | Self::PauseClients | Self::RollingRestart => Ok(()),
        }
    }
}

/// Freezes members and returns how many jobs run, theirs among them: they cannot end any more.
async fn frozen(members: &[Member], system: &System) -> anyhow::Result<usize> {
    for member in members {
        system.freeze(*member)?;
    }
    Ok(system.standing().await?.running())
}
