//! What can be asked for on the command line.

use std::fmt;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, value_parser};

use crate::messages::{BODY_LIMIT, BODY_MINIMUM, Scheme};

/// Measures Posthaste and prints one JSON object a line for each figure.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Benchmark {
    /// How many events a second are accepted, and how long a sender waits for its 200
    Ingest(Ingest),
    /// How many events a second go from sender to receiver, and how long each takes
    EndToEnd(EndToEnd),
    /// Whether anything is lost when all that can die dies under load
    Crash(Crash),
    /// How many ids a second the queue alone takes and hands out, how soon, and what each weighs
    Queue(crate::queue::Options),
    /// What a rolling restart costs, under load
    Restart(Restart),
    /// What one endpoint that hangs costs the others
    Neighbours(Neighbours),
    /// How long a Redis that has forgotten everything takes to hold it again
    Recovery(Recovery),
}

/// What every benchmark takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// Which set-up to measure
    #[arg(long, value_enum, default_value = "both")]
    pub(crate) setup: SetupChoice,
    /// Bytes in each body
    #[arg(long, default_value_t = 1024, value_parser = value_parser!(u32).range(BODY_MINIMUM..=BODY_LIMIT))]
    pub(crate) size: u32,
    /// Folder for the servers' data: on a real disk, or commits cost nothing
    #[arg(long, default_value = "/var/tmp", value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Binary to measure, instead of the one of this checkout
    #[arg(long, value_name = "FILE")]
    pub(crate) posthaste: Option<PathBuf>,
    /// Leave data and logs in place, to look into
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Ingest {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Connections that send at the same time; a figure for each
    #[arg(long, value_delimiter = ',', default_value = "16,64")]
    #[arg(value_parser = value_parser!(u16).range(1..=4096))]
    pub(crate) connections: Vec<u16>,
    /// Events in each figure
    #[arg(long, default_value_t = 20_000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) events: u32,
    /// How the events are signed
    #[arg(long, value_enum, default_value = "github")]
    pub(crate) scheme: Scheme,
}

#[derive(Debug, clap::Args)]
pub(crate) struct EndToEnd {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Connections that send at the same time; a figure for each
    #[arg(long, value_delimiter = ',', default_value = "16,64")]
    #[arg(value_parser = value_parser!(u16).range(1..=4096))]
    pub(crate) connections: Vec<u16>,
    /// Events in each figure
    #[arg(long, default_value_t = 20_000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) events: u32,
    /// Events a second, instead of as many as the connections can
    #[arg(long, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rate: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Crash {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Connections that send at the same time
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u16).range(1..=4096))]
    pub(crate) connections: u16,
    /// Events to send
    #[arg(long, default_value_t = 20_000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) events: u32,
    /// How often something is killed, by turns over all that can be
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u32).range(0..=1000))]
    pub(crate) kills: u32,
    /// Events a second: slow enough that every blow falls into the load
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rate: u32,
    /// Draws the moments of an earlier run again
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Restart {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Connections that send at the same time
    #[arg(long, default_value_t = 16, value_parser = value_parser!(u16).range(1..=4096))]
    pub(crate) connections: u16,
    /// Events to send
    #[arg(long, default_value_t = 30_000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) events: u32,
    /// Events a second
    #[arg(long, default_value_t = 1000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rate: u32,
    /// Processes of workers, scaled out
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) workers: u16,
    /// How often all of them are restarted, evenly over the events
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Neighbours {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Connections that send at the same time
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u16).range(1..=4096))]
    pub(crate) connections: u16,
    /// Events in each turn
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) events: u32,
    /// Events for the endpoint that hangs, in each round: more than may be under way
    #[arg(long, default_value_t = 2000, value_parser = value_parser!(u32).range(1..=100_000))]
    pub(crate) hanging: u32,
    /// Processes of workers, scaled out
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) workers: u16,
    /// Rounds of four turns: without the one that hangs, twice with it, without it
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..=20))]
    pub(crate) rounds: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Recovery {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Connections that send at the same time
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u16).range(1..=4096))]
    pub(crate) connections: u16,
    /// Jobs that wait when Redis forgets them
    #[arg(long, default_value_t = 100_000, value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) jobs: u32,
}

/// One of the two ways to run Posthaste.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Setup {
    /// One process, SQLite, queue in the process.
    Own,
    /// `ingress` and `workers` on PostgreSQL and Redis.
    Scaled,
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "own",
            Self::Scaled => "scaled",
        })
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SetupChoice {
    Own,
    Scaled,
    Both,
}

impl SetupChoice {
    /// Returns the set-ups meant, in the order they are measured.
    pub(crate) fn setups(self) -> &'static [Setup] {
        match self {
            Self::Own => &[Setup::Own],
            Self::Scaled => &[Setup::Scaled],
            Self::Both => &[Setup::Own, Setup::Scaled],
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn connections_are_a_list() {
        let args = Args::try_parse_from(["bench", "ingest", "--connections", "1,2,3"]).unwrap();

        let Benchmark::Ingest(ingest) = args.benchmark else {
            panic!("not ingest");
        };
        assert_eq!(ingest.connections, [1, 2, 3]);
    }

    #[test]
    fn no_connections_at_all_is_refused() {
        assert!(Args::try_parse_from(["bench", "ingest", "--connections", "0"]).is_err());
    }
}
