//! The operator.

use std::io::Read;
use std::path::Path;
use std::process::{self, Stdio};
use std::thread;

use serde_json::Value;

use super::{LONG, posthaste, until};

/// A command line to be run.
#[derive(Debug)]
pub struct Command(process::Command);

/// What a command left.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Exit status; `None` when a signal ended it.
    pub status: Option<i32>,
    /// Data.
    pub stdout: String,
    /// The rest.
    pub stderr: String,
}

impl Command {
    /// `posthaste ARGS…` in `folder`, with no setting from the environment of the tests.
    #[must_use]
    pub fn new(folder: &Path, args: &[&str]) -> Self {
        let mut command = process::Command::new(posthaste());
        command.args(args).current_dir(folder);
        without_settings(&mut command);
        Self(command)
    }

    /// With a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    /// Runs it to its end, with nothing on stdin.
    ///
    /// # Panics
    ///
    /// When it does not end within a minute.
    #[must_use]
    #[track_caller]
    pub fn run(mut self) -> Finished {
        let mut child = self
            .0
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("posthaste can be run");
        let stdout = child.stdout.take().map(read_in_background);
        let stderr = child.stderr.take().map(read_in_background);
        let mut status = None;
        until(LONG, &format!("{:?} has ended", self.0), || {
            status = child.try_wait().expect("a child can be waited for");
            status.is_some()
        });
        let text = |reader: Option<thread::JoinHandle<String>>| {
            reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
        };
        Finished {
            status: status.and_then(|status| status.code()),
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }
}

impl Finished {
    /// Itself, if it exited with 0.
    ///
    /// # Panics
    ///
    /// When it did not.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.status, Some(0), "{self:?}");
        self
    }

    /// Stdout as JSON.
    ///
    /// # Panics
    ///
    /// When it exited with another status than 0, or printed no JSON.
    #[must_use]
    #[track_caller]
    pub fn json(self) -> Value {
        let finished = self.ok();
        serde_json::from_str(&finished.stdout)
            .unwrap_or_else(|error| panic!("{finished:?} is not JSON: {error}"))
    }
}

/// Takes away what would override the configuration file of a test.
pub(crate) fn without_settings(command: &mut process::Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("POSTHASTE") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
}

fn read_in_background(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is worth showing.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
