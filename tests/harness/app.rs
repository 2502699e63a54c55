//! The product in one of its set-ups.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::{
    Command, Config, Database, Finished, LONG, Process, Proxy, Redis, Request, Response, Role, until,
};

/// How long a job may take from its delivery to its end in the ledger before `Drop` calls it left.
const SETTLING: Duration = Duration::from_secs(15);

/// How the product runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// `up`, SQLite, the queue in the process.
    Own,
    /// `ingress` and `workers` so many times, PostgreSQL, Redis.
    Scaled {
        /// Processes of `ingress`.
        ingress: usize,
        /// Processes of `workers`.
        workers: usize,
    },
    /// `up` on PostgreSQL and Redis.
    UpOnServers,
}

impl Setup {
    /// The role that delivers.
    #[must_use]
    pub const fn worker(self) -> Role {
        match self {
            Self::Own | Self::UpOnServers => Role::Up,
            Self::Scaled { .. } => Role::Workers,
        }
    }
}

/// The product, running, with stores of its own.
///
/// When a test ends well, dropping it fails the test if a job is left unfinished that the test did not
/// [mention](Self::leaves). When a test fails, it prints the end of every log.
#[derive(Debug)]
pub struct TestApp {
    // Fields are dropped in order: processes before the stores they use.
    processes: Vec<Process>,
    /// The private Redis, where the set-up has one.
    pub redis: Option<Redis>,
    /// The private database, where the set-up has one.
    pub database: Option<Database>,
    /// The wire to the database, for apps made by [`Builder::cuttable_ledger`].
    pub wire: Option<Proxy>,
    config: Config,
    said: Mutex<String>,
    mentioned: Mutex<BTreeSet<String>>,
    folder: TempDir,
}

/// An app to be.
#[derive(Debug)]
pub struct Builder {
    setup: Setup,
    config: Config,
    redis_running: bool,
    cuttable_ledger: bool,
}

impl Builder {
    /// Leaves Redis stopped.
    #[must_use]
    pub const fn redis_down(mut self) -> Self {
        self.redis_running = false;
        self
    }

    /// Puts a [`Proxy`] between the processes and PostgreSQL.
    #[must_use]
    pub const fn cuttable_ledger(mut self) -> Self {
        self.cuttable_ledger = true;
        self
    }

    /// Starts every process, and waits until each does its work.
    #[must_use]
    #[track_caller]
    pub fn start(self) -> TestApp {
        let mut app = self.prepare();
        for process in &mut app.processes {
            process.spawn();
        }
        for process in &mut app.processes {
            process.until_working();
        }
        app
    }

    /// Starts the stores, but none of the processes.
    ///
    /// # Panics
    ///
    /// When a store does not start.
    #[must_use]
    pub fn prepare(self) -> TestApp {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let roles = match self.setup {
            Setup::Own | Setup::UpOnServers => vec![Role::Up],
            Setup::Scaled { ingress, workers } => {
                [vec![Role::Ingress; ingress], vec![Role::Workers; workers]].concat()
            }
        };
        let servers = self.setup != Setup::Own;
        let redis = servers.then(|| {
            if self.redis_running {
                Redis::start()
            } else {
                Redis::stopped()
            }
        });
        let database = servers.then(Database::create);
        let wire = database
            .as_ref()
            .filter(|_| self.cuttable_ledger)
            .map(|database| Proxy::to(&database.host()));
        let app = TestApp {
            processes: roles
                .into_iter()
                .map(|role| Process::new(role, folder.path().to_owned()))
                .collect(),
            redis,
            database,
            wire,
            config: self.config,
            said: Mutex::default(),
            mentioned: Mutex::default(),
            folder,
        };
        app.write_config();
        app
    }
}

impl TestApp {
    /// Describes an app.
    #[must_use]
    pub const fn on(setup: Setup, config: Config) -> Builder {
        Builder {
            setup,
            config,
            redis_running: true,
            cuttable_ledger: false,
        }
    }

    /// The `index`th process of a role, from 0.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn process(&mut self, role: Role, index: usize) -> &mut Process {
        self.processes
            .iter_mut()
            .filter(|process| process.role() == role)
            .nth(index)
            .expect("the set-up has this process")
    }

    /// Where requests can be sent to.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.processes
            .iter()
            .filter(|process| process.role() != Role::Workers)
            .map(Process::address)
            .collect()
    }

    /// Where the first ingress takes requests.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.addresses()[0]
    }

    /// Sends a request to the first ingress.
    #[must_use]
    #[track_caller]
    pub fn send(&self, request: &Request) -> Response {
        request.send(self.address())
    }

    /// Takes another configuration, which processes see when they are started again.
    pub fn reconfigure(&mut self, config: Config) {
        self.config = config;
        self.write_config();
    }

    /// A file name in the folder of this app.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs `posthaste ARGS…` on this app's configuration.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Finished {
        let finished = Command::new(self.folder.path(), args)
            .env(
                "POSTHASTE_CONFIG",
                &self.folder.path().join("posthaste.toml").to_string_lossy(),
            )
            .env("POSTHASTE__HTTP__LISTEN", &self.address().to_string())
            .run();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.push_str(&format!(
            "$ posthaste {}\n{}{}",
            args.join(" "),
            finished.stdout,
            finished.stderr
        ));
        finished
    }

    /// Runs `posthaste ARGS… --json`, which must do well, and returns what it printed.
    #[must_use]
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).json()
    }

    /// Every job there is.
    ///
    /// # Panics
    ///
    /// When they cannot be listed.
    #[must_use]
    #[track_caller]
    pub fn jobs(&self) -> Vec<Value> {
        match self.json(&["jobs", "list", "--limit", "100000"]) {
            Value::Array(jobs) => jobs,
            other => panic!("{other} is not a list of jobs"),
        }
    }

    /// The one job of an event.
    ///
    /// # Panics
    ///
    /// When it has none, or several.
    #[must_use]
    #[track_caller]
    pub fn job_of(&self, event: &str) -> String {
        let jobs = self.jobs();
        let mut ids = jobs.iter().filter(|job| job["event_id"] == event).map(id_of);
        match (ids.next(), ids.next()) {
            (Some(id), None) => id,
            _ => panic!("event {event} has not exactly one job: {jobs:?}"),
        }
    }

    /// What `jobs show` tells of a job.
    #[must_use]
    #[track_caller]
    pub fn job(&self, id: &str) -> Value {
        self.json(&["jobs", "show", id])
    }

    /// The attempts in what `jobs show` tells of a job.
    ///
    /// # Panics
    ///
    /// When it tells of none.
    #[must_use]
    #[track_caller]
    pub fn attempts(shown: &Value) -> &[Value] {
        shown["attempts"]
            .as_array()
            .expect("a job that is shown has its attempts")
    }

    /// Waits until a job is in `state`, and returns what is known of it then.
    #[track_caller]
    pub fn until_state(&self, id: &str, state: &str) -> Value {
        let mut job = Value::Null;
        let began = Instant::now();
        while job["state"] != state {
            assert!(began.elapsed() < LONG, "job {id} has not become {state}: {job:#}");
            job = self.job(id);
        }
        job
    }

    /// Waits until no job is unfinished.
    #[track_caller]
    pub fn until_finished(&self) {
        until(LONG, "no job is unfinished", || self.unfinished().is_empty());
    }

    /// Says that the test leaves a job unfinished on purpose.
    pub fn leaves(&self, job: &str) {
        self.mentioned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(job.to_owned());
    }

    /// Every log and every output of a command so far.
    #[must_use]
    pub fn everything_said(&self) -> String {
        let logs: String = self.processes.iter().map(Process::log).collect();
        logs + &self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unfinished(&self) -> Vec<Value> {
        let is_unfinished = |job: &Value| {
            ["queued", "scheduled", "running", "retrying", "parked"]
                .iter()
                .any(|state| job["state"] == *state)
        };
        self.jobs().into_iter().filter(is_unfinished).collect()
    }

    fn left(&self) -> Vec<Value> {
        let mentioned = self.mentioned.lock().unwrap_or_else(PoisonError::into_inner);
        let unmentioned = |job: &Value| !mentioned.contains(&id_of(job));
        self.unfinished().into_iter().filter(unmentioned).collect()
    }

    fn write_config(&self) {
        let mut config = self.config.clone().set("log.format", "\"json\"");
        match &self.database {
            None => {
                let path = self.folder.path().join("ledger.db");
                config = config.set("ledger.url", &format!("\"sqlite:{}\"", path.display()));
            }
            Some(database) => {
                let url = match &self.wire {
                    None => database.url(),
                    Some(wire) => database
                        .url()
                        .replace(&database.host(), &wire.address().to_string()),
                };
                config = config.set("ledger.url", &format!("\"{url}\""));
            }
        }
        if let Some(redis) = &self.redis {
            config = config.set("queue.url", &format!("\"{}\"", redis.url()));
        }
        std::fs::write(self.folder.path().join("posthaste.toml"), config.text())
            .expect("a configuration can be written");
    }

    #[expect(
        clippy::print_stderr,
        reason = "a failing test is where people look for the logs"
    )]
    fn print_ends_of_logs(&self) {
        for process in &self.processes {
            let log = process.log();
            let lines: Vec<&str> = log.lines().collect();
            let end = &lines[lines.len().saturating_sub(30)..];
            eprintln!("--- end of the log of {:?}\n{}", process.role(), end.join("\n"));
        }
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.print_ends_of_logs();
            return;
        }
        let began = Instant::now();
        let mut left = self.left();
        while !left.is_empty() && began.elapsed() < SETTLING {
            left = self.left();
        }
        if !left.is_empty() {
            self.print_ends_of_logs();
            panic!("jobs are left that the test did not mention: {left:#?}");
        }
    }
}

fn id_of(job: &Value) -> String {
    job["id"].as_str().expect("a job has an id").to_owned()
}
