use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;

use crate::args::{Common, Setup};
use crate::figures::note;
use crate::messages::{SECRET, Scheme};
use crate::postgres::Postgres;
use crate::process::Process;
use crate::redis::Redis;
use crate::scratch::{Scratch, free_address};
use crate::wire::Connection;
use crate::{binary, usage};

/// Deliveries to the receiver at the same time, as configured.
const MAX_IN_FLIGHT: u32 = 64;

/// Posthaste in one set-up, with the servers it needs. Dropping it stops them all.
#[derive(Debug)]
pub(crate) struct System {
    binary: PathBuf,
    ingress: SocketAddr,
    // Dropped in this order: first who uses the servers, then the servers, then their folder.
    processes: Vec<Process>,
    redis: Option<Redis>,
    postgres: Option<Postgres>,
    scratch: Scratch,
    /// Peak memory of processes that have ended.
    peaks: BTreeMap<String, f64>,
}

impl System {
    /// Starts the servers of the set-up, then Posthaste, and returns once it can accept.
    ///
    /// With an endpoint, all events of the one source are delivered there. Without, there is no
    /// route, and scaled out no `workers` either.
    pub(crate) async fn start(
        common: &Common,
        setup: Setup,
        scheme: Scheme,
        endpoint: Option<SocketAddr>,
    ) -> anyhow::Result<Self> {
        let binary = binary::find(common.posthaste.as_deref())?;
        let scratch = Scratch::new(&common.dir, common.keep)?;
        if common.keep {
            note(&format!("data and logs: {}", scratch.path("").display()));
        }
        let ingress = free_address()?;
        let (redis, postgres, ledger, queue) = match setup {
            Setup::Own => {
                let ledger = format!("sqlite:{}", scratch.path("ledger.db").display());
                (None, None, ledger, "local:".to_owned())
            }
            Setup::Scaled => {
                let redis = Redis::start(&scratch).await?;
                let postgres = Postgres::start(&scratch).await?;
                let (ledger, queue) = (postgres.url(), redis.url());
                (Some(redis), Some(postgres), ledger, queue)
            }
        };
        fs::write(
            scratch.path("posthaste.toml"),
            configuration(ingress, &ledger, &queue, scheme, endpoint)?,
        )?;
        let mut system = Self {
            binary,
            ingress,
            processes: Vec::new(),
            redis,
            postgres,
            scratch,
            peaks: BTreeMap::new(),
        };
        let roles: &[&str] = match (setup, endpoint) {
            (Setup::Own, _) => &["up"],
            (Setup::Scaled, Some(_)) => &["ingress", "workers"],
            (Setup::Scaled, None) => &["ingress"],
        };
        for role in roles {
            system.run(role)?;
            system.wait_until_ready().await?;
        }
        Ok(system)
    }

    /// Returns where it accepts events.
    pub(crate) fn ingress(&self) -> SocketAddr {
        self.ingress
    }

    /// Starts the process of a role.
    pub(crate) fn run(&mut self, role: &str) -> anyhow::Result<()> {
        let mut command = Command::new(&self.binary);
        command
            .arg(role)
            .arg("--config")
            .arg(self.scratch.path("posthaste.toml"));
        // It keeps to the file, whatever is set where we run.
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("POSTHASTE") {
                command.env_remove(name);
            }
        }
        command.current_dir(self.scratch.path(""));
        self.processes
            .push(Process::start(role, &mut command, &self.scratch)?);
        Ok(())
    }

    /// Kills the process of a role at once, as `kill -9` does.
    pub(crate) fn kill(&mut self, role: &str) -> anyhow::Result<()> {
        let position = self.processes.iter().position(|process| process.name() == role);
        let process = self
            .processes
            .swap_remove(position.with_context(|| format!("no {role} is running"))?);
        note_peak(&mut self.peaks, &process);
        drop(process);
        Ok(())
    }

    /// Makes the queue's Redis forget everything; there is none in the own set-up.
    pub(crate) fn flush_queue(&self) -> anyhow::Result<()> {
        self.redis.as_ref().map_or(Ok(()), Redis::flush)
    }

    /// Returns the peak memory of each of Posthaste's processes in MiB, those killed included.
    pub(crate) fn peak_memory(&self) -> BTreeMap<String, f64> {
        let mut peaks = self.peaks.clone();
        for process in &self.processes {
            note_peak(&mut peaks, process);
        }
        peaks
    }

    /// Returns the processor time that everyone has used so far: Posthaste, its servers, and us.
    pub(crate) fn processor_time(&self) -> BTreeMap<String, Duration> {
        let servers = self.redis.as_ref().map(Redis::process).into_iter();
        let servers = servers.chain(self.postgres.as_ref().map(Postgres::process));
        let all = self.processes.iter().chain(servers);
        let mut times: BTreeMap<_, _> = all
            .map(|process| (process.name().to_owned(), usage::with_children(process.pid())))
            .collect();
        times.insert("bench".to_owned(), usage::alone(std::process::id()));
        times
    }

    /// Shows the end of each log of Posthaste's.
    pub(crate) fn show_logs(&self) {
        for process in &self.processes {
            note(&format!("--- {}\n{}", process.name(), process.end_of_log()));
        }
    }

    /// Waits until the ingress says that it can accept. The process started last must stay alive.
    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let ingress = self.ingress;
        let process = self.processes.last_mut().context("nothing is running")?;
        process
            .wait_until(async || ready(ingress).await.unwrap_or(false))
            .await
    }
}

async fn ready(ingress: SocketAddr) -> anyhow::Result<bool> {
    let mut connection = Connection::open(ingress).await?;
    connection
        .write(format!("GET /readyz HTTP/1.1\r\nhost: {ingress}\r\n\r\n").as_bytes())
        .await?;
    let answer = connection.read().await?.context("closed without an answer")?;
    Ok(answer.status()? == 200)
}

fn note_peak(peaks: &mut BTreeMap<String, f64>, process: &Process) {
    if let Some(peak) = usage::peak_memory(process.pid()) {
        let highest = peaks.entry(process.name().to_owned()).or_default();
        *highest = highest.max(crate::figures::rounded(peak, 1));
    }
}

fn configuration(
    ingress: SocketAddr,
    ledger: &str,
    queue: &str,
    scheme: Scheme,
    endpoint: Option<SocketAddr>,
) -> anyhow::Result<String> {
    let source = scheme.name();
    let mut toml = format!(
        "[http]\nlisten = {:?}\n\n[ledger]\nurl = {ledger:?}\n\n[queue]\nurl = {queue:?}\n\n\
         [log]\nformat = \"json\"\nfilter = \"warn\"\n\n\
         [[sources]]\nname = {source:?}\nscheme = {source:?}\nsecrets = [{SECRET:?}]\n",
        ingress.to_string()
    );
    if let Some(endpoint) = endpoint {
        write!(
            toml,
            "\n[[endpoints]]\nname = \"receiver\"\nurl = \"http://{endpoint}/hooks\"\n\
             max_in_flight = {MAX_IN_FLIGHT}\n\n[[routes]]\nsource = {source:?}\nendpoint = \"receiver\"\n"
        )?;
    }
    Ok(toml)
}
