use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::process::Process;
use crate::scratch::{Scratch, free_address};

const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// A Redis of our own, set up as in production: append-only file, synced every second.
#[derive(Debug)]
pub(crate) struct Redis {
    address: SocketAddr,
    process: Process,
}

impl Redis {
    /// Starts one on a free port.
    pub(crate) async fn start(scratch: &Scratch) -> anyhow::Result<Self> {
        let address = free_address()?;
        let folder = scratch.path("redis");
        std::fs::create_dir(&folder)?;
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
            .args(["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""])
            .arg("--dir")
            .arg(folder);
        let mut process = Process::start("redis", &mut command, scratch)
            .context("Redis is needed\nhint: apt-get install redis-server")?;
        process
            .wait_until(async || order(address, "PING").is_ok_and(|answer| answer == "+PONG"))
            .await?;
        Ok(Self { address, process })
    }

    /// Returns the URL for the configuration.
    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Returns the server's process.
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// Makes it forget everything.
    pub(crate) fn flush(&self) -> anyhow::Result<()> {
        let answer = order(self.address, "FLUSHALL")?;
        ensure!(answer == "+OK", "FLUSHALL answered {answer}");
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

/// Sends one order of one word, which Redis also takes as plain text, and returns the answer's line.
fn order(address: SocketAddr, word: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_LIMIT))?;
    stream.write_all(format!("{word}\r\n").as_bytes())?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n") {
        stream.read_exact(&mut byte)?;
        answer.extend(byte);
    }
    Ok(String::from_utf8_lossy(&answer).trim_end().to_owned())
}
