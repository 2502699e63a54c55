use std::path::PathBuf;

use clap::{ValueEnum, value_parser};

/// What `bench queue` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Jobs in each figure that names no other number
    #[arg(long, default_value_t = 200_000, value_parser = value_parser!(u32).range(1_000..=5_000_000))]
    pub(crate) jobs: u32,
    /// Jobs that wait when `backlog` begins; a figure for each
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "1000,100000,1000000",
        value_name = "JOBS"
    )]
    #[arg(value_parser = value_parser!(u32).range(1_000..=5_000_000))]
    pub(crate) backlog: Vec<u32>,
    /// Jobs that the worker runs at once
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u16).range(1..=10_000))]
    pub(crate) concurrency: u16,
    /// Ids that the worker fetches at once; the product's default
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u16).range(1..=500))]
    pub(crate) batch: u16,
    /// Which engine to measure
    #[arg(long, value_enum, default_value = "both")]
    pub(crate) engine: EngineChoice,
    /// What to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Measure::ALL)]
    pub(crate) measure: Vec<Measure>,
    /// Folder for the servers' data: on a real disk, or commits cost nothing
    #[arg(long, default_value = "/var/tmp", value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// Where a queue is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Engine {
    Local,
    Redis,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EngineChoice {
    Local,
    Redis,
    Both,
}

impl EngineChoice {
    /// Returns the engines meant, in the order they are measured.
    pub(crate) fn engines(self) -> &'static [Engine] {
        match self {
            Self::Local => &[Engine::Local],
            Self::Redis => &[Engine::Redis],
            Self::Both => &[Engine::Local, Engine::Redis],
        }
    }
}

/// A figure, or several of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Measure {
    /// Pushes a second, and handlers that do nothing a second
    Rate,
    /// The same with the ledger's claim and settle around each job
    Ledger,
    /// From the push to the handler of an idle worker
    WakeUp,
    /// What a waiting job takes of Redis' memory
    Memory,
    /// Whether a long line is as fast as a short one
    Backlog,
    /// Many jobs that become due at once
    Due,
}

impl Measure {
    const ALL: [Self; 6] = [
        Self::Rate,
        Self::Ledger,
        Self::WakeUp,
        Self::Memory,
        Self::Backlog,
        Self::Due,
    ];
}

impl std::fmt::Display for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Rate => "rate",
            Self::Ledger => "ledger",
            Self::WakeUp => "wake-up",
            Self::Memory => "memory",
            Self::Backlog => "backlog",
            Self::Due => "due",
        })
    }
}
