use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::{Instant, sleep};

use crate::scratch::Scratch;

const START_LIMIT: Duration = Duration::from_secs(60);
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
        // Both fail only if the process has ended already, which is all that is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
