//! A PostgreSQL database of one's own, on the server of `POSTHASTE_TEST_POSTGRES`.

use std::process::Command;

use super::Port;

/// A database that is made for one test and dropped after it.
#[derive(Debug)]
pub struct Database {
    name: String,
    // A taken port is a name that no other running test has.
    _unique: Port,
}

impl Database {
    /// Makes one.
    ///
    /// # Panics
    ///
    /// When `POSTHASTE_TEST_POSTGRES` is not set, or the server does not answer.
    #[must_use]
    pub fn create() -> Self {
        let unique = Port::free();
        let name = format!("posthaste_it_{}_{}", std::process::id(), unique.number());
        run(&server(), &format!("drop database if exists {name} with (force)"));
        run(&server(), &format!("create database {name}"));
        Self {
            name,
            _unique: unique,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> String {
        let server = server();
        let (start, _) = server
            .rsplit_once('/')
            .expect("POSTHASTE_TEST_POSTGRES ends in /DATABASE");
        format!("{start}/{}", self.name)
    }

    /// `host:port` of its server.
    ///
    /// # Panics
    ///
    /// When `POSTHASTE_TEST_POSTGRES` names no host.
    #[must_use]
    pub fn host(&self) -> String {
        let url = self.url();
        let authority = url.split('/').nth(2).expect("a URL names a host");
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        if host.contains(':') {
            host.to_owned()
        } else {
            format!("{host}:5432")
        }
    }

    /// Runs a statement and returns what it prints, a row a line.
    #[must_use]
    pub fn query(&self, sql: &str) -> String {
        run(&self.url(), sql)
    }

    /// Ends every connection to it, as a failover does; returns how many there were.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    pub fn terminate_connections(&self) -> usize {
        run(
            &server(),
            &format!(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{}'",
                self.name
            ),
        )
        .lines()
        .count()
    }
}

impl Drop for Database {
    #[expect(clippy::print_stderr, reason = "there is nobody else to tell")]
    fn drop(&mut self) {
        let sql = format!("drop database if exists {} with (force)", self.name);
        // A second panic would hide the first, and a database left behind harms nobody.
        if let Err(error) = try_run(&server(), &sql) {
            eprintln!("{} was not dropped: {error}", self.name);
        }
    }
}

fn server() -> String {
    std::env::var("POSTHASTE_TEST_POSTGRES").expect(
        "POSTHASTE_TEST_POSTGRES is the URL of a superuser of a private PostgreSQL (scripts/test starts one)",
    )
}

fn run(url: &str, sql: &str) -> String {
    try_run(url, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn try_run(url: &str, sql: &str) -> Result<String, String> {
    let output = Command::new("psql")
        .args([
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--set",
            "ON_ERROR_STOP=1",
        ])
        .args(["--dbname", url, "--command", sql])
        .output()
        .map_err(|error| format!("psql cannot be run (scripts/test installs it): {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
