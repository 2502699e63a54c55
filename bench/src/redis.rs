use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::process::Process;
use crate::scratch::{Scratch, free_address};

const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// What a Redis still knows after it was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    /// As in production: an append-only file, synced every second.
    EverySecond,
    /// Nothing.
    Nothing,
}

/// A Redis of our own.
#[derive(Debug)]
pub(crate) struct Redis {
    address: SocketAddr,
    persistence: Persistence,
    folder: PathBuf,
    process: Process,
}

impl Redis {
    /// Starts one on a free port.
    pub(crate) async fn start(scratch: &Scratch, persistence: Persistence) -> anyhow::Result<Self> {
        let address = free_address()?;
        let folder = scratch.path("redis");
        std::fs::create_dir(&folder)?;
        let process = launch(address, persistence, &folder, scratch).await?;
        Ok(Self {
            address,
            persistence,
            folder,
            process,
        })
    }

    /// Kills it at once.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        self.process.kill()
    }

    /// Starts it again where it was, if it was killed.
    pub(crate) async fn start_if_ended(&mut self, scratch: &Scratch) -> anyhow::Result<()> {
        if self.process.has_ended()? {
            self.process = launch(self.address, self.persistence, &self.folder, scratch).await?;
        }
        Ok(())
    }

    /// Returns the URL for the configuration.
    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Returns the server's process.
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// Gives it a command, whose arguments are single words; an error unless it answers OK.
    pub(crate) fn order(&self, command: &str) -> anyhow::Result<()> {
        let answer = ask(self.address, command)?;
        ensure!(answer.starts_with("+OK"), "{command} answered {answer}");
        Ok(())
    }

    /// Returns how many bytes it has taken for everything: keys, connections, scripts, buffers.
    pub(crate) fn used_memory(&self) -> anyhow::Result<u64> {
        let info: redis::InfoDict = redis::cmd("INFO").arg("memory").query(&mut self.connect()?)?;
        info.get("used_memory").context("INFO names no used_memory")
    }

    /// Returns how many bytes its keys weigh, every element counted.
    pub(crate) fn memory_of_keys(&self) -> anyhow::Result<u64> {
        let mut connection = self.connect()?;
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection)?;
        let mut sum = 0;
        for key in keys {
            let mut usage = redis::cmd("MEMORY");
            usage.arg("USAGE").arg(key).arg("SAMPLES").arg(0);
            let bytes: Option<u64> = usage.query(&mut connection)?;
            sum += bytes.unwrap_or(0);
        }
        Ok(sum)
    }

    fn connect(&self) -> anyhow::Result<redis::Connection> {
        Ok(redis::Client::open(self.url())?.get_connection()?)
    }
}

async fn launch(
    address: SocketAddr,
    persistence: Persistence,
    folder: &Path,
    scratch: &Scratch,
) -> anyhow::Result<Process> {
    let append_only = match persistence {
        Persistence::EverySecond => "yes",
        Persistence::Nothing => "no",
    };
    let mut command = Command::new("redis-server");
    command
        .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
        .args([
            "--appendonly",
            append_only,
            "--appendfsync",
            "everysec",
            "--save",
            "",
        ])
        .arg("--dir")
        .arg(folder);
    let mut process = Process::start("redis", &mut command, scratch)
        .context("Redis is needed\nhint: apt-get install redis-server")?;
    process
        .wait_until(async || ask(address, "PING").is_ok_and(|answer| answer == "+PONG"))
        .await?;
    Ok(process)
}

/// Sends one command as plain text, which Redis also takes, and returns the first line of the answer.
fn ask(address: SocketAddr, command: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    stream.write_all(format!("{command}\r\n").as_bytes())?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n") {
        stream.read_exact(&mut byte)?;
        answer.extend(byte);
    }
    Ok(String::from_utf8_lossy(&answer).trim_end().to_owned())
}
