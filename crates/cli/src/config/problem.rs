use std::fmt;

use super::origin::{Origin, Path};

/// One mistake in the configuration: where, what, and what to do about it.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    origin: Origin,
    path: Path,
    message: String,
    hint: Option<String>,
}

impl Problem {
    /// Says what is wrong at a place. The message never holds a secret.
    pub(crate) fn new(origin: Origin, path: Path, message: impl Into<String>) -> Self {
        Self {
            origin,
            path,
            message: message.into(),
            hint: None,
        }
    }

    /// Adds what to do about it.
    pub(crate) fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.origin != Origin::Default {
            write!(f, "{}: ", self.origin)?;
        }
        if !self.path.is_root() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// The configuration cannot be used; nothing was started.
#[derive(Debug)]
pub(crate) struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    /// All mistakes that were found, in the order of the configuration.
    pub(crate) fn new(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// Returns the hints, each once.
    pub(crate) fn hints(&self) -> Vec<&str> {
        let mut hints: Vec<&str> = Vec::new();
        for hint in self.problems.iter().filter_map(|problem| problem.hint.as_deref()) {
            if !hints.contains(&hint) {
                hints.push(hint);
            }
        }
        hints
    }
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self::new(vec![problem])
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.problems.iter().enumerate() {
            if place > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
