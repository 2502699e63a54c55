use crate::config::DEFAULT;
use crate::failure::Failure;
use crate::print::Printer;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Prints the default configuration, each key with a comment
    Default,
}

/// Prints configuration.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    let Command::Default = command;
    let mut out = Printer::stdout();
    out.bytes(DEFAULT.as_bytes())?;
    out.finish()
}
