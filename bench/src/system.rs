use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::args::{Common, Setup};
use crate::configuration::{self, Endpoint};
use crate::figures::note;
use crate::fleet::Member;
use crate::plan::Plan;
use crate::postgres::Postgres;
use crate::process::Process;
use crate::redis::Redis;
use crate::scratch::{Scratch, free_address};
use crate::standing::Standing;
use crate::wire::Connection;
use crate::{binary, usage};

/// Posthaste in one set-up, with the servers it needs. Dropping it stops them all.
#[derive(Debug)]
pub(crate) struct System {
    binary: PathBuf,
    /// Where each member that listens does.
    ingress: BTreeMap<Member, SocketAddr>,
    // Dropped in this order: first who uses the servers, then the servers, then their folder.
    processes: BTreeMap<Member, Process>,
    redis: Option<Redis>,
    postgres: Option<Postgres>,
    scratch: Scratch,
    /// Peak memory of processes that have ended.
    peaks: BTreeMap<String, f64>,
}

impl System {
    /// Starts the servers of the set-up, then Posthaste, and returns once it can accept.
    ///
    /// The events of the one source go to these endpoints; without any, nowhere.
    pub(crate) async fn start(common: &Common, plan: &Plan, endpoints: &[Endpoint]) -> anyhow::Result<Self> {
        let binary = binary::find(common.posthaste.as_deref())?;
        let scratch = Scratch::new(&common.dir, common.keep)?;
        if common.keep {
            note(&format!("data and logs: {}", scratch.path("").display()));
        }
        let (redis, postgres, ledger, queue) = match plan.setup {
            Setup::Own => {
                let ledger = format!("sqlite:{}", scratch.path("ledger.db").display());
                (None, None, ledger, "local:".to_owned())
            }
            Setup::Scaled => {
                let redis = Redis::start(&scratch, plan.persistence).await?;
                let postgres = Postgres::start(&scratch).await?;
                let (ledger, queue) = (postgres.url(), redis.url());
                (Some(redis), Some(postgres), ledger, queue)
            }
        };
        fs::write(
            scratch.path("posthaste.toml"),
            configuration::write(&ledger, &queue, plan.scheme, endpoints)?,
        )?;
        let listening = plan.fleet.members().filter(|member| member.role.listens());
        let mut system = Self {
            binary,
            ingress: listening
                .map(|member| Ok((member, free_address()?)))
                .collect::<anyhow::Result<_>>()?,
            processes: BTreeMap::new(),
            redis,
            postgres,
            scratch,
            peaks: BTreeMap::new(),
        };
        for member in plan.fleet.members() {
            system.run(member)?;
            system.wait_until_ready(member).await?;
        }
        Ok(system)
    }

    /// Returns where it accepts events.
    pub(crate) fn ingress(&self) -> Vec<SocketAddr> {
        self.ingress.values().copied().collect()
    }

    /// Returns the members that run and run jobs.
    pub(crate) fn working(&self) -> Vec<Member> {
        let members = self.processes.keys().copied();
        members.filter(|member| member.role.works()).collect()
    }

    /// Starts the process of a member.
    pub(crate) fn run(&mut self, member: Member) -> anyhow::Result<()> {
        let mut command = self.command(&[member.role.name()]);
        if let Some(listen) = self.ingress.get(&member) {
            command.env("POSTHASTE__HTTP__LISTEN", listen.to_string());
        }
        let process = Process::start(&member.to_string(), &mut command, &self.scratch)?;
        self.processes.insert(member, process);
        Ok(())
    }

    /// Kills the process of a member at once, as `kill -9` does.
    pub(crate) fn kill(&mut self, member: Member) -> anyhow::Result<()> {
        let mut process = self.take(member)?;
        process.kill()
    }

    /// Tells the process of a member to stop, and waits until it has.
    pub(crate) async fn stop(&mut self, member: Member) -> anyhow::Result<()> {
        let mut process = self.take(member)?;
        process.signal("TERM")?;
        process.wait_for_end().await
    }

    /// Has the process of a member do nothing until it is thawed.
    pub(crate) fn freeze(&self, member: Member) -> anyhow::Result<()> {
        self.process(member)?.signal("STOP")
    }

    /// Has the process of a member go on.
    pub(crate) fn thaw(&self, member: Member) -> anyhow::Result<()> {
        self.process(member)?.signal("CONT")
    }

    /// Returns the Redis; an error in a set-up without one.
    pub(crate) fn redis(&mut self) -> anyhow::Result<&mut Redis> {
        self.redis.as_mut().context("this set-up has no Redis")
    }

    /// Returns the PostgreSQL; an error in a set-up without one.
    pub(crate) fn postgres(&mut self) -> anyhow::Result<&mut Postgres> {
        self.postgres.as_mut().context("this set-up has no PostgreSQL")
    }

    /// Starts the servers that were killed, with what is left of their data.
    pub(crate) async fn start_servers(&mut self) -> anyhow::Result<()> {
        if let Some(redis) = &mut self.redis {
            redis.start_if_ended(&self.scratch).await?;
        }
        if let Some(postgres) = &mut self.postgres {
            postgres.start_if_ended(&self.scratch).await?;
        }
        Ok(())
    }

    /// Runs a command of the operator's to its end and returns what it printed.
    pub(crate) async fn operate(&self, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
        let mut command = tokio::process::Command::from(self.command(arguments));
        let output = command.kill_on_drop(true).output().await?;
        ensure!(
            output.status.success(),
            "posthaste {} failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output.stdout)
    }

    /// Asks how the queue of the deliveries stands.
    pub(crate) async fn standing(&self) -> anyhow::Result<Standing> {
        Standing::read(&self.operate(&["queues", "list", "--json"]).await?)
    }

    /// Returns the peak memory of each of Posthaste's processes in MiB, those killed included.
    pub(crate) fn peak_memory(&self) -> BTreeMap<String, f64> {
        let mut peaks = self.peaks.clone();
        for process in self.processes.values() {
            note_peak(&mut peaks, process);
        }
        peaks
    }

    /// Returns the processor time that everyone has used so far: Posthaste, its servers, and us.
    pub(crate) fn processor_time(&self) -> BTreeMap<String, Duration> {
        let servers = self.redis.as_ref().map(Redis::process).into_iter();
        let servers = servers.chain(self.postgres.as_ref().map(Postgres::process));
        let all = self.processes.values().chain(servers);
        let mut times: BTreeMap<_, _> = all
            .map(|process| (process.name().to_owned(), usage::with_children(process.pid())))
            .collect();
        times.insert("bench".to_owned(), usage::alone(std::process::id()));
        times
    }

    /// Shows the end of each log of Posthaste's.
    pub(crate) fn show_logs(&self) {
        for process in self.processes.values() {
            note(&format!("--- {}\n{}", process.name(), process.end_of_log()));
        }
    }

    /// Returns the binary with these arguments. It keeps to the file, whatever is set where we run.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .arg("--config")
            .arg(self.scratch.path("posthaste.toml"))
            .current_dir(self.scratch.path(""));
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("POSTHASTE") {
                command.env_remove(name);
            }
        }
        command
    }

    fn process(&self, member: Member) -> anyhow::Result<&Process> {
        let process = self.processes.get(&member);
        process.with_context(|| format!("no {member} is running"))
    }

    fn take(&mut self, member: Member) -> anyhow::Result<Process> {
        let process = self.processes.remove(&member);
        let process = process.with_context(|| format!("no {member} is running"))?;
        note_peak(&mut self.peaks, &process);
        Ok(process)
    }

    /// Waits until a member that listens says that it can accept, and one that does not is running.
    async fn wait_until_ready(&mut self, member: Member) -> anyhow::Result<()> {
        let listen = self.ingress.get(&member).copied();
        let process = self
            .processes
            .get_mut(&member)
            .context("it has just been started")?;
        process
            .wait_until(async || match listen {
                Some(address) => ready(address).await.unwrap_or(false),
                None => true,
            })
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
