use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use clap::ValueEnum;
use serde::Deserialize;
use tokio::process::Command;

/// Another queue, measured by a program of its own in `bench/peers/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// BullMQ 5, on Node
    Bullmq,
    /// `bullmq-official`, BullMQ's own port to Rust
    BullmqOfficial,
}

/// What a peer reached.
#[derive(Debug, Deserialize)]
pub(crate) struct Rates {
    pub(crate) push_per_s: f64,
    pub(crate) consume_per_s: f64,
    /// Of the peer, where its program knows it.
    pub(crate) version: Option<String>,
}

/// A file of a program, and where it belongs in the program's folder.
type File = (&'static str, &'static str);

impl Peer {
    pub(crate) const ALL: [Self; 2] = [Self::Bullmq, Self::BullmqOfficial];

    /// Returns the name that its figures stand under.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bullmq => "bullmq",
            Self::BullmqOfficial => "bullmq-official",
        }
    }

    fn files(self) -> [File; 2] {
        match self {
            Self::Bullmq => [
                ("package.json", include_str!("../../peers/bullmq/package.json")),
                ("bench.js", include_str!("../../peers/bullmq/bench.js")),
            ],
            Self::BullmqOfficial => [
                (
                    "Cargo.toml",
                    include_str!("../../peers/bullmq-official/Cargo.toml"),
                ),
                (
                    "src/main.rs",
                    include_str!("../../peers/bullmq-official/src/main.rs"),
                ),
            ],
        }
    }

    /// Copies its program to where this executable was built, and has its packages fetched there: once, for later runs
    /// find them.
    pub(crate) async fn prepare(self) -> anyhow::Result<Program> {
        let own = std::env::current_exe()?;
        let target = own
            .ancestors()
            .nth(2)
            .context("this executable is in no target folder")?;
        let folder = target.join("peers").join(self.name());
        for (path, text) in self.files() {
            write(&folder.join(path), text)?;
        }
        let mut install = match self {
            Self::Bullmq => command(
                "npm",
                &["install", "--no-package-lock", "--no-audit", "--no-fund"],
            ),
            Self::BullmqOfficial => command("cargo", &["build", "--release", "--target-dir", "target"]),
        };
        // stdout is for figures.
        let installed = install.current_dir(&folder).stdout(Stdio::null()).status().await;
        let installed = installed.with_context(|| format!("{} cannot be installed", self.name()))?;
        ensure!(
            installed.success(),
            "{} cannot be installed: {installed}",
            self.name()
        );
        Ok(Program { peer: self, folder })
    }
}

/// A peer's program, ready to run.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) peer: Peer,
    folder: PathBuf,
}

impl Program {
    /// Has it push and consume so many jobs on that Redis.
    pub(crate) async fn run(&self, url: &str, jobs: usize, concurrency: u16) -> anyhow::Result<Rates> {
        let mut command = match self.peer {
            Peer::Bullmq => command("node", &["bench.js"]),
            Peer::BullmqOfficial => {
                let built = self.folder.join("target/release/posthaste-bench-bullmq-official");
                Command::new(built)
            }
        };
        let output = command
            .args([url, &jobs.to_string(), &concurrency.to_string()])
            .current_dir(&self.folder)
            .stderr(Stdio::inherit())
            // An interrupt drops this.
            .kill_on_drop(true)
            .output()
            .await?;
        let name = self.peer.name();
        ensure!(output.status.success(), "{name} ended with {}", output.status);
        serde_json::from_slice(&output.stdout).with_context(|| format!("{name} prints no rates"))
    }
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    command
}

/// Writes a file unless it is as it should be: a changed one would be built anew.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if fs::read_to_string(path).is_ok_and(|written| written == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
