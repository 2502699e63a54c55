//! A Redis of one's own, to be flushed, stopped and killed.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{LONG, Port, until};

/// A private `redis-server` without persistence: when it is stopped, it has forgotten everything.
#[derive(Debug)]
pub struct Redis {
    port: Port,
    folder: tempfile::TempDir,
    server: Option<Child>,
}

impl Redis {
    /// Starts one.
    #[must_use]
    pub fn start() -> Self {
        let mut redis = Self::stopped();
        redis.start_again();
        redis
    }

    /// Takes a port for one, and leaves it closed.
    ///
    /// # Panics
    ///
    /// When no temporary folder can be made.
    #[must_use]
    pub fn stopped() -> Self {
        Self {
            port: Port::free(),
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            server: None,
        }
    }

    /// Starts it, empty, on the same port.
    ///
    /// # Panics
    ///
    /// When `redis-server` is not installed or does not come up.
    pub fn start_again(&mut self) {
        let server = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &self.port.number().to_string()])
            .args(["--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is on the PATH (scripts/test installs it)");
        self.server = Some(server);
        until(LONG, "redis answers", || self.try_command("PING").is_some());
    }

    /// Kills it; with it goes all that it held.
    ///
    /// # Panics
    ///
    /// When it is not running.
    pub fn kill_9(&mut self) {
        let mut server = self.server.take().expect("redis is running");
        server.kill().expect("redis can be killed");
        server.wait().expect("redis has ended");
    }

    /// Runs a command without arguments that need quotes, and returns the first line of the answer.
    ///
    /// # Panics
    ///
    /// When there is no answer.
    pub fn command(&self, command: &str) -> String {
        self.try_command(command).expect("redis answers")
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.port.address())
    }

    fn try_command(&self, command: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.port.address()).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        stream.write_all(format!("{command}\r\n").as_bytes()).ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // It is ours and is going away: there is nobody to tell of a failure.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}
