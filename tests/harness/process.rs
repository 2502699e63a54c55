//! A running role of the product.

use std::fs::{File, OpenOptions};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::cli::without_settings;
use super::{LONG, Port, Request, posthaste, until};

/// Which subcommand a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Both in one.
    Up,
    /// Takes events in.
    Ingress,
    /// Delivers them.
    Workers,
}

impl Role {
    const fn subcommand(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Ingress => "ingress",
            Self::Workers => "workers",
        }
    }
}

/// A process that can be started, killed and started again; it keeps its port and appends to its log.
#[derive(Debug)]
pub struct Process {
    role: Role,
    folder: PathBuf,
    log: PathBuf,
    port: Port,
    settings: Vec<(String, String)>,
    starts: usize,
    child: Option<Child>,
}

impl Process {
    /// One that is to run in `folder` with the `posthaste.toml` there.
    #[must_use]
    pub fn new(role: Role, folder: PathBuf) -> Self {
        let port = Port::free();
        let log = folder.join(format!("{}-{}.log", role.subcommand(), port.number()));
        Self {
            role,
            folder,
            log,
            port,
            settings: Vec::new(),
            starts: 0,
            child: None,
        }
    }

    /// What it runs.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Gives it, from its next start, an environment variable that the others do not have.
    pub fn set(&mut self, variable: &str, value: &str) {
        self.settings.push((variable.to_owned(), value.to_owned()));
    }

    /// Starts it and waits until it does its work.
    #[track_caller]
    pub fn start(&mut self) {
        self.spawn();
        self.until_working();
    }

    /// Starts it.
    ///
    /// # Panics
    ///
    /// When it runs already.
    pub fn spawn(&mut self) {
        assert!(self.child.is_none(), "{self:?} is running");
        let mut command = Command::new(posthaste());
        without_settings(&mut command);
        let child = command
            .arg(self.role.subcommand())
            .arg("--config")
            .arg(self.folder.join("posthaste.toml"))
            .env("POSTHASTE__HTTP__LISTEN", self.port.address().to_string())
            .envs(self.settings.iter().cloned())
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(self.log_file())
            .stderr(self.log_file())
            .spawn()
            .expect("posthaste can be run");
        self.child = Some(child);
        self.starts += 1;
    }

    /// Waits until it answers (`up`, `ingress`) or fetches (`workers`).
    ///
    /// # Panics
    ///
    /// With its log, when it ends instead.
    #[track_caller]
    pub fn until_working(&mut self) {
        until(LONG, &format!("{} works", self.role.subcommand()), || {
            let ended = self
                .child
                .as_mut()
                .and_then(|child| child.try_wait().ok().flatten());
            assert!(
                ended.is_none(),
                "{} ended with {ended:?}:\n{}",
                self.role.subcommand(),
                self.log()
            );
            match self.role {
                Role::Workers => self.times_logged("\"working\"") >= self.starts,
                Role::Up | Role::Ingress => Request::new("GET", "/healthz", "")
                    .try_send(self.address())
                    .is_ok_and(|response| response.status == 200),
            }
        });
    }

    /// Where it takes requests.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Kills it as a crash would.
    ///
    /// # Panics
    ///
    /// When it is not running.
    pub fn kill_9(&mut self) {
        let mut child = self.child.take().expect("it is running");
        child.kill().expect("it can be killed");
        child.wait().expect("it has ended");
    }

    /// Asks it to stop.
    pub fn sigterm(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal by name.
    ///
    /// # Panics
    ///
    /// When it is not running.
    pub fn signal(&self, name: &str) {
        let pid = self.child.as_ref().expect("it is running").id();
        let status = Command::new("kill")
            .args(["-s", name, &pid.to_string()])
            .status()
            .expect("kill can be run");
        assert!(status.success(), "{name} could not be sent");
    }

    /// Waits until it has ended by itself.
    ///
    /// # Panics
    ///
    /// When it does not end within `deadline`, or was not running.
    #[track_caller]
    pub fn until_ended(&mut self, deadline: Duration) -> ExitStatus {
        let mut child = self.child.take().expect("it is running");
        let mut status = None;
        until(deadline, &format!("{} has ended", self.role.subcommand()), || {
            status = child.try_wait().expect("a child can be waited for");
            status.is_some()
        });
        status.expect("it has ended")
    }

    /// All it logged, over all starts.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// The most memory it has used since its start, in KiB.
    ///
    /// # Panics
    ///
    /// When it is not running, or the machine has no `/proc`.
    #[must_use]
    pub fn peak_memory_kib(&self) -> u64 {
        let pid = self.child.as_ref().expect("it is running").id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("/proc tells of it");
        status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .and_then(|value| value.trim().trim_end_matches(" kB").parse().ok())
            .expect("/proc tells the peak")
    }

    fn times_logged(&self, text: &str) -> usize {
        self.log().matches(text).count()
    }

    fn log_file(&self) -> File {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .expect("a log file can be opened")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It is ours and is going away: there is nobody to tell of a failure.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
