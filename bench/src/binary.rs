use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::figures::note;

/// Returns the binary to measure: the one given, or else the released one of this checkout.
///
/// Run by cargo, it is brought up to date first, so that nobody measures yesterday's program;
/// otherwise the one beside this executable is taken as it is.
pub(crate) fn find(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        // A process is started in another folder than ours.
        return given
            .canonicalize()
            .with_context(|| format!("there is no {}", given.display()));
    }
    let own = env::current_exe()?;
    let profile = own.parent().context("this executable is in no folder")?;
    match env::var_os("CARGO") {
        Some(cargo) => {
            let target = profile
                .parent()
                .context("this executable is in no target folder")?;
            note("building posthaste");
            let status = Command::new(cargo)
                .args([
                    "build",
                    "--release",
                    "--quiet",
                    "--package",
                    "posthaste",
                    "--target-dir",
                ])
                .arg(target)
                .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
                // stdout is for figures.
                .stdout(Stdio::null())
                .status()?;
            ensure!(status.success(), "posthaste does not build");
            Ok(target.join("release/posthaste"))
        }
        None => {
            let beside = profile.join("posthaste");
            ensure!(
                beside.exists(),
                "there is no {}\nhint: cargo build --release -p posthaste",
                beside.display()
            );
            Ok(beside)
        }
    }
}
