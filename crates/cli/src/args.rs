use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands::{check, config, dead, demo, events, jobs, queues, send, workers};

/// Takes in webhooks and sees each one through.
///
/// Verified, deduplicated, committed, queued, delivered with retries, dead-lettered when it is
/// hopeless, and replayed when you say so. What it has accepted it does not lose.
#[derive(Debug, Parser)]
#[command(name = "posthaste", version)]
pub(crate) struct Cli {
    /// The configuration; without it ./posthaste.toml if that is there, else defaults
    #[arg(long, global = true, env = "POSTHASTE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tells the whole story on real payloads, with nothing installed, and exits
    Demo(demo::Args),
    /// Runs everything in one process: ingress and workers
    Up,
    /// Runs an ingress: takes events in (needs a queue on Redis)
    Ingress,
    /// Runs workers: deliver what came in (needs a queue on Redis)
    Workers(workers::Args),
    /// Checks the configuration and everything it names
    Check(check::Args),
    /// Brings the ledger's schema up to date
    Migrate,
    /// Prints configuration
    #[command(subcommand)]
    Config(config::Command),
    /// Signs an event and sends it to a running ingress
    Send(send::Args),
    /// What came in
    #[command(subcommand)]
    Events(events::Command),
    /// What became of it
    #[command(subcommand)]
    Jobs(jobs::Command),
    /// What we stopped trying
    #[command(subcommand)]
    Dead(dead::Command),
    /// The lists that jobs wait in
    #[command(subcommand)]
    Queues(queues::Command),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn helps(command: &mut clap::Command, path: &str, seen: &mut Vec<String>) {
        let text = command.render_long_help().to_string();
        assert!(text.contains("Usage:"), "{path} has no usage");
        assert!(command.get_about().is_some(), "{path} does not say what it does");
        seen.push(path.to_owned());
        for inner in command.get_subcommands_mut() {
            let path = format!("{path} {}", inner.get_name());
            helps(inner, &path, seen);
        }
    }

    #[test]
    fn every_subcommand_has_a_help() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        let mut seen = Vec::new();

        helps(&mut command, "posthaste", &mut seen);

        for path in [
            "posthaste up",
            "posthaste config default",
            "posthaste dead replay",
            "posthaste queues pause",
            "posthaste send",
        ] {
            assert!(
                seen.iter().any(|name| name == path),
                "{path} is not among {seen:?}"
            );
        }
    }
}
