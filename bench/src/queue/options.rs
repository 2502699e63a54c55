use std::path::PathBuf;

use clap::{ValueEnum, value_parser};

use super::peer::Peer;

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
    /// What to measure; everything when left out
    #[arg(long, value_enum, value_delimiter = ',')]
    measure: Vec<Measure>,
    /// Compare with others instead, by turns: with all that can be had here, or with those named
    #[arg(long, value_enum, value_delimiter = ',', num_args = 0.., require_equals = true, value_name = "PEER")]
    #[arg(conflicts_with = "measure")]
    peers: Option<Vec<Peer>>,
    /// Folder for the servers' data: on a real disk, or commits cost nothing
    #[arg(long, default_value = "/var/tmp", value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

/// What is to be done.
pub(crate) enum Task<'a> {
    /// Take these figures of our own.
    Measure(&'a [Measure]),
    /// Compare with all that can be had.
    CompareWithAny,
    /// Compare with these, all of them.
    Compare(&'a [Peer]),
}

impl Options {
    /// Says what to do.
    pub(crate) fn task(&self) -> Task<'_> {
        match (&self.peers, &self.measure[..]) {
            (Some(peers), _) if peers.is_empty() => Task::CompareWithAny,
            (Some(peers), _) => Task::Compare(peers),
            (None, []) => Task::Measure(&Measure::ALL),
            (None, measures) => Task::Measure(measures),
        }
    }
}

/// Where a queue is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Local,
    Redis,
}

impl Engine {
    /// Returns the name that its figures stand under.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Redis => "redis",
        }
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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

    /// Returns the name that its figures stand under.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Ledger => "ledger",
            Self::WakeUp => "wake-up",
            Self::Memory => "memory",
            Self::Backlog => "backlog",
            Self::Due => "due",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn options(arguments: &[&str]) -> Result<Options, clap::Error> {
        Line::try_parse_from([&["queue"], arguments].concat()).map(|line| line.options)
    }

    #[test]
    fn without_a_word_everything_is_measured_and_nothing_compared() {
        let options = options(&[]).unwrap();

        assert!(matches!(options.task(), Task::Measure(all) if all == Measure::ALL));
        assert_eq!(options.backlog, [1_000, 100_000, 1_000_000]);
    }

    #[test]
    fn peers_are_compared_with_all_of_them_or_with_those_named() {
        let (any, one) = (
            options(&["--peers"]).unwrap(),
            options(&["--peers=bullmq"]).unwrap(),
        );

        assert!(matches!(any.task(), Task::CompareWithAny));
        assert!(matches!(one.task(), Task::Compare(&[Peer::Bullmq])));
    }

    #[test]
    fn a_comparison_takes_no_other_figures() {
        assert!(options(&["--peers", "--measure", "rate"]).is_err());
    }
}
