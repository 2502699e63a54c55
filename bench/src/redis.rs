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
