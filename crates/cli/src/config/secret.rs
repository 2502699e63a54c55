use std::fmt;

use serde::{Deserialize, Deserializer};

use super::env::Environment;

/// A text that is never printed: not by `Debug`, not in an error, not in a log.
///
/// Written as it is, or as `env:NAME` (an environment variable) or `file:PATH` (a file, without the
/// line break at its end).
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// Keeps a text secret.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text. Whoever asks must not print it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Puts the text that `env:` or `file:` refers to in place of the reference.
    pub(super) fn resolve(&mut self, environment: &Environment) -> Result<(), Unresolved> {
        if let Some(name) = self.0.strip_prefix("env:") {
            let value = environment.get(name).ok_or_else(|| Unresolved {
                message: format!("the environment variable {name:?} is not set"),
                hint: format!("export {name}=..."),
            })?;
            self.0 = value.to_owned();
        } else if let Some(path) = self.0.strip_prefix("file:") {
            let text = std::fs::read_to_string(path).map_err(|error| Unresolved {
                message: format!("the file {path:?} cannot be read: {error}"),
                hint: format!("ls -l {path}"),
            })?;
            self.0 = text.trim_end_matches(['\r', '\n']).to_owned();
        }
        Ok(())
    }
}

/// Why a reference leads nowhere, and what to type to look into it.
#[derive(Debug)]
pub(super) struct Unresolved {
    pub(super) message: String,
    pub(super) hint: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_from_the_environment_is_the_value_of_its_variable() {
        let mut secret = Secret::new("env:TOKEN");

        secret.resolve(&Environment::from([("TOKEN", "s3cret")])).unwrap();

        assert_eq!(secret.expose(), "s3cret");
    }

    #[test]
    fn a_secret_from_a_file_is_its_text_without_the_last_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "two words \n").unwrap();
        let mut secret = Secret::new(format!("file:{}", path.display()));

        secret.resolve(&Environment::default()).unwrap();

        assert_eq!(secret.expose(), "two words ");
    }

    #[test]
    fn a_missing_variable_is_named() {
        let error = Secret::new("env:TOKEN")
            .resolve(&Environment::default())
            .unwrap_err();

        assert!(error.message.contains("\"TOKEN\""), "{}", error.message);
    }

    #[test]
    fn debug_does_not_show_it() {
        assert!(!format!("{:?}", Secret::new("s3cret")).contains("s3cret"));
    }
}
