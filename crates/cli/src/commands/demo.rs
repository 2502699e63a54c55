use std::path::PathBuf;

use crate::clock;
use crate::demo;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A body to send in place of our own GitHub push
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
}

/// Tells the whole story.
///
/// # Errors
///
/// A step was not seen to happen.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    demo::run(args.payload, clock::system())
        .await
        .map_err(|error| Failure::failed(format!("{error:#}")))
}
