use posthaste_jobs::chain;
use std::fmt;
use std::io;
use std::process::ExitCode;

use posthaste_store::LedgerError;

use crate::config::ConfigError;

/// Why a command ends without having done what was asked, with the exit status that says so.
#[derive(Debug)]
pub(crate) struct Failure {
    status: Status,
    message: String,
    hints: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Whoever read our output has enough: no failure, and nobody to tell.
    ClosedPipe,
    /// It was tried and did not work: 1.
    Failed,
    /// It was not understood, or the configuration is wrong; nothing was done: 2.
    Usage,
}

impl Failure {
    /// It was tried and did not work.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::with(Status::Failed, message.into())
    }

    /// It was not understood; nothing was done.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::with(Status::Usage, message.into())
    }

    /// Adds something that can be typed.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns the exit status: 1 failed, 2 bad usage.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.status {
            Status::ClosedPipe => ExitCode::SUCCESS,
            Status::Failed => ExitCode::from(1),
            Status::Usage => ExitCode::from(2),
        }
    }

    /// Returns what is printed: nothing when nobody reads it.
    pub(crate) fn report(&self) -> String {
        if self.status == Status::ClosedPipe {
            return String::new();
        }
        let errors = self.message.lines().map(|line| format!("error: {line}\n"));
        errors
            .chain(self.hints.iter().map(|hint| format!("hint: {hint}\n")))
            .collect()
    }

    fn with(status: Status, message: String) -> Self {
        Self {
            status,
            message,
            hints: Vec::new(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        error
            .hints()
            .into_iter()
            .fold(Self::usage(error.to_string()), Self::hint)
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        let hint = match error {
            LedgerError::Unavailable(_) => "posthaste check",
            LedgerError::Refused(_) => "posthaste migrate",
        };
        Self::failed(chain(&error)).hint(hint)
    }
}

/// Of writing to stdout.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::with(Status::ClosedPipe, String::new())
        } else {
            Self::failed(format!("cannot write: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_failure_and_says_nothing() {
        let closed = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));

        assert_eq!(closed.report(), "");
        assert_eq!(
            format!("{:?}", closed.exit_code()),
            format!("{:?}", ExitCode::SUCCESS)
        );
    }

    #[test]
    fn a_hint_stands_after_the_error_on_a_line_of_its_own() {
        let failure = Failure::usage("not this way").hint("posthaste --help");

        assert_eq!(failure.report(), "error: not this way\nhint: posthaste --help\n");
    }
}
