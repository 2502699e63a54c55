//! The binary `posthaste`: reads the configuration, puts the rooms together, and talks to the operator.

mod args;
mod clock;
mod commands;
mod config;
mod demo;
mod failure;
mod log_writer;
mod nearest;
mod post;
mod print;
mod reload;
mod schema;
mod select;
mod service;
mod shutdown;
mod telemetry;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};
use crate::config::{Environment, Settings};
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // There is nowhere left to tell that stderr is gone.
            let _ = write!(std::io::stderr(), "{}", failure.report());
            failure.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    // Whoever speaks TLS below takes this one; an error says that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the runtime: {error}")))?;
    let file = cli.config.filter(|path| !path.as_os_str().is_empty());
    let settings = Settings::new(file, Environment::of_process());
    runtime.block_on(dispatch(cli.command, settings))
}

async fn dispatch(command: Command, settings: Settings) -> Result<(), Failure> {
    let _log = match command {
        // These log as their configuration says.
        Command::Up | Command::Ingress | Command::Workers(_) => None,
        _ => telemetry::start_if_asked(settings.environment())?,
    };
    match command {
        Command::Demo(args) => commands::demo::run(args).await,
        Command::Up => commands::up::run(settings).await,
        Command::Ingress => commands::ingress::run(settings).await,
        Command::Workers(args) => commands::workers::run(args, settings).await,
        Command::Check(args) => commands::check::run(&args, &settings).await,
        Command::Migrate => commands::migrate::run(&settings).await,
        Command::Config(command) => commands::config::run(command),
        Command::Send(args) => commands::send::run(args, &settings).await,
        Command::Events(command) => commands::events::run(command, &settings).await,
        Command::Jobs(command) => commands::jobs::run(command, &settings).await,
        Command::Dead(command) => commands::dead::run(command, &settings).await,
        Command::Queues(command) => commands::queues::run(command, &settings).await,
    }
}
