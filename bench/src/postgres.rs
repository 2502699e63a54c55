use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::time::sleep;

use crate::process::{Process, send_signal};
use crate::scratch::{Scratch, free_address};
use crate::usage;

/// A PostgreSQL of our own with its defaults, so that a commit is on the disk when it is answered.
#[derive(Debug)]
pub(crate) struct Postgres {
    address: SocketAddr,
    programs: Programs,
    home: PathBuf,
    process: Process,
}

impl Postgres {
    /// Makes a cluster and starts it on a free port.
    pub(crate) async fn start(scratch: &Scratch) -> anyhow::Result<Self> {
        let programs = Programs::find()?;
        let home = scratch.path("postgres");
        fs::create_dir(&home)?;
        if let Some((uid, gid)) = programs.user {
            chown(&home, Some(uid), Some(gid))?;
        }
        let made = programs
            .command("initdb", &home)
            // The cluster lives for one figure: it need not survive a power cut before that.
            .args([
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
                "--no-locale",
                "--no-sync",
            ])
            .arg("--pgdata")
            .arg(data(&home))
            .output()
            .context("PostgreSQL is needed\nhint: apt-get install postgresql")?;
        ensure!(
            made.status.success(),
            "initdb failed\n{}",
            String::from_utf8_lossy(&made.stderr)
        );

        let address = free_address()?;
        let process = launch(&programs, address, &home, scratch).await?;
        Ok(Self {
            address,
            programs,
            home,
            process,
        })
    }

    /// Kills it with all its processes at once, none of which gets to write anything more.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        // Stopped first, so that no child is born meanwhile.
        self.process.signal("STOP")?;
        let children = usage::children(self.process.pid());
        let mut all = children.clone();
        all.push(self.process.pid());
        send_signal("KILL", &all)?;
        self.process.wait_for_end().await?;
        // A server does not start while children of the one before it hold its shared memory.
        while children.iter().any(|child| usage::is_alive(*child)) {
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Starts it again if it was killed; it recovers what was committed from its log.
    pub(crate) async fn start_if_ended(&mut self, scratch: &Scratch) -> anyhow::Result<()> {
        if self.process.has_ended()? {
            self.process = launch(&self.programs, self.address, &self.home, scratch).await?;
        }
        Ok(())
    }

    /// Returns the URL for the configuration.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@{}/postgres", self.address)
    }

    /// Returns the process that all others of the server are children of.
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }
}

async fn launch(
    programs: &Programs,
    address: SocketAddr,
    home: &Path,
    scratch: &Scratch,
) -> anyhow::Result<Process> {
    let port = address.port().to_string();
    let mut command = programs.command("postgres", home);
    command.arg("-D").arg(data(home)).args([
        "-p",
        &port,
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "unix_socket_directories=",
    ]);
    let mut process = Process::start("postgres", &mut command, scratch)?;
    process
        .wait_until(async || {
            let mut probe = programs.command("pg_isready", home);
            let probe = probe.args(["-q", "-h", "127.0.0.1", "-p", &port, "-U", "postgres"]);
            probe.status().is_ok_and(|status| status.success())
        })
        .await?;
    Ok(process)
}

fn data(home: &Path) -> PathBuf {
    home.join("data")
}

impl Drop for Postgres {
    /// Stops the server by its own means: killed, it would leave shared memory behind.
    fn drop(&mut self) {
        let mut stop = self.programs.command("pg_ctl", Path::new("/"));
        let stop = stop
            .arg("stop")
            .arg("-D")
            .arg(data(&self.home))
            .args(["-m", "immediate", "-w"]);
        // If it fails, the process is killed next.
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Where PostgreSQL's programs are, and who runs them.
#[derive(Clone, Debug)]
struct Programs {
    /// `None`: they are on the path.
    folder: Option<PathBuf>,
    /// User and group to run as; `None`: as ourselves.
    user: Option<(u32, u32)>,
}

impl Programs {
    fn find() -> anyhow::Result<Self> {
        let versions = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten();
        let folder = versions
            .filter(|version| version.path().join("bin/initdb").exists())
            .filter_map(|version| {
                let number: u32 = version.file_name().to_str()?.parse().ok()?;
                Some((number, version.path().join("bin")))
            })
            .max()
            .map(|(_, folder)| folder);
        // PostgreSQL refuses to run as root.
        let user = if fs::metadata("/proc/self")?.uid() == 0 {
            Some(unprivileged_user()?)
        } else {
            None
        };
        Ok(Self { folder, user })
    }

    fn command(&self, program: &str, folder: &Path) -> Command {
        let path = self
            .folder
            .as_ref()
            .map_or_else(|| PathBuf::from(program), |bin| bin.join(program));
        let mut command = Command::new(path);
        command.current_dir(folder);
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }
}

/// Returns user and group id of `postgres`, or else of `nobody`.
fn unprivileged_user() -> anyhow::Result<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd")?;
    ["postgres", "nobody"]
        .into_iter()
        .find_map(|name| ids(&users, name))
        .context("PostgreSQL cannot run as root, and there is neither a user postgres nor nobody")
}

fn ids(users: &str, name: &str) -> Option<(u32, u32)> {
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [found, _, uid, gid, ..] = fields[..] else {
            return None;
        };
        if found == name {
            Some((uid.parse().ok()?, gid.parse().ok()?))
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_the_whole_name() {
        let users = "root:x:0:0:root:/root:/bin/bash\n\
                     postgresql:x:1:2::/:\n\
                     postgres:x:101:104:,,,:/var/lib:/bin/sh\n";

        assert_eq!(ids(users, "postgres"), Some((101, 104)));
        assert_eq!(ids(users, "nobody"), None);
    }
}
