use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tokio::time::{Instant, sleep};

use crate::scratch::Scratch;

const START_LIMIT: Duration = Duration::from_secs(60);
/// Longer than the grace period of a stop.
const END_LIMIT: Duration = Duration::from_secs(60);
/// Lines of its log that are shown when a process ends by itself.
const LOG_LINES: usize = 20;

/// A child process that writes its log to `NAME.log`. Dropping it kills it and waits for its end.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a process; what it prints is added to the log of that name in `scratch`.
    pub(crate) fn start(name: &str, command: &mut Command, scratch: &Scratch) -> anyhow::Result<Self> {
        let log = scratch.path(&format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            // An interrupt at the terminal is for us; we stop the children in our order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {:?}", command.get_program()))?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
        })
    }

    /// Returns the name that its figures stand under.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, named as for `kill`: `TERM`, `STOP`, `CONT`.
    pub(crate) fn signal(&self, name: &str) -> anyhow::Result<()> {
        send_signal(name, &[self.pid()])
    }

    /// Kills it at once, as `kill -9` does, and waits for its end.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Returns whether it has ended.
    pub(crate) fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits until it has ended, however it did.
    pub(crate) async fn wait_for_end(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        while !self.has_ended()? {
            ensure!(
                start.elapsed() < END_LIMIT,
                "{} has not ended after {}s",
                self.name,
                END_LIMIT.as_secs()
            );
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Waits until `ready` says so; an error if the process ends before, or takes too long.
    pub(crate) async fn wait_until(&mut self, mut ready: impl AsyncFnMut() -> bool) -> anyhow::Result<()> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}\n{}", self.name, self.end_of_log());
            }
            if ready().await {
                return Ok(());
            }
            if start.elapsed() > START_LIMIT {
                bail!(
                    "{} is not ready after {}s\n{}",
                    self.name,
                    START_LIMIT.as_secs(),
                    self.end_of_log()
                );
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns the last lines of its log.
    pub(crate) fn end_of_log(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It fails only if the process has ended already, which is all that is wanted.
        let _ = self.kill();
    }
}

/// Sends a signal to processes.
pub(crate) fn send_signal(name: &str, pids: &[u32]) -> anyhow::Result<()> {
    let status = Command::new("kill")
        .args(["-s", name, "--"])
        .args(pids.iter().map(u32::to_string))
        .status()
        .context("there is no command kill")?;
    ensure!(status.success(), "kill -s {name} of {pids:?} failed");
    Ok(())
}
