//! The configuration: `posthaste.toml`, overridden from the environment, checked as a whole.
//!
//! A mistake anywhere is an error that names its place, before anything starts.

mod check;
mod de;
mod env;
mod mistake;
mod origin;
mod problem;
mod secret;
mod sections;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::HashMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use posthaste_ingress::{Catalog, InvalidCatalog};
use posthaste_jobs::RetryPolicy;
use posthaste_outbound::EndpointConfig;
use serde::Deserialize;

pub(crate) use env::Environment;
pub(crate) use problem::ConfigError;
#[cfg(test)]
pub(crate) use secret::Secret;
pub(crate) use sections::{Log, LogFormat, Source};

use origin::{Origin, Path};
use problem::Problem;
use tree::Entry;

/// The default configuration, each key with a comment.
pub(crate) const DEFAULT: &str = include_str!("../../../../config/default.toml");

/// The file that is read when none is named.
const FILE: &str = "posthaste.toml";

/// Everything that can be set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) http: posthaste_ingress::Config,
    pub(crate) ledger: sections::Ledger,
    pub(crate) queue: sections::Queue,
    pub(crate) workers: posthaste_workers::Config,
    pub(crate) log: Log,
    pub(crate) sources: Vec<Source>,
    pub(crate) endpoints: Vec<sections::Endpoint>,
    pub(crate) routes: Vec<sections::Route>,
}

/// How much of the configuration a command needs to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of it.
    Everything,
    /// The ingress's address, and sources with their secrets.
    Sources,
    /// The ledger. Secrets of sources and endpoints stay unread, so that an operator can look at dead
    /// letters from a shell that does not have them.
    Ledger,
    /// The ledger and the queues.
    Queues,
}

/// Where the configuration is read from; read again on `SIGHUP`.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    file: Option<PathBuf>,
    environment: Arc<Environment>,
}

impl Settings {
    /// Reads `file`, or `posthaste.toml` in the working directory if that is there, or nothing.
    pub(crate) fn new(file: Option<PathBuf>, environment: Environment) -> Self {
        let file = file.or_else(|| Some(PathBuf::from(FILE)).filter(|path| path.exists()));
        Self {
            file,
            environment: Arc::new(environment),
        }
    }

    /// Returns the file, if there is one.
    pub(crate) fn file(&self) -> Option<&FilePath> {
        self.file.as_deref()
    }

    /// Returns the environment.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Reads and checks.
    ///
    /// # Errors
    ///
    /// Names every mistake that was found and where it stands.
    pub(crate) fn load(&self, scope: Scope) -> Result<Config, ConfigError> {
        let root = self.tree()?;
        let mut config: Config = de::read(&root)?;
        let problems = check::problems(&mut config, scope, &root, &self.environment);
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::new(problems))
        }
    }

    /// Returns a mistake that a room found in a value: it does not know where the value was written.
    pub(crate) fn blame(&self, section: &str, key: &str, message: String) -> ConfigError {
        let path = Path::default().key(section).key(key);
        let origin = self.tree().map_or(Origin::Default, |root| root.locate(&path));
        Problem::new(origin, path, message)
            .hint(Some("posthaste config default".to_owned()))
            .into()
    }

    fn tree(&self) -> Result<Entry, Problem> {
        let mut root = match &self.file {
            Some(file) => {
                let text = std::fs::read_to_string(file).map_err(|error| {
                    let message = format!("the file {} cannot be read: {error}", file.display());
                    Problem::new(Origin::Default, Path::default(), message)
                        .hint(Some(format!("posthaste config default > {}", file.display())))
                })?;
                Entry::parse(&text, file.clone())?
            }
            None => Entry::empty(),
        };
        self.environment.apply(&mut root)?;
        Ok(root)
    }
}

impl Config {
    /// Makes sources and routes as the ingress takes them.
    pub(crate) fn catalog(&self) -> Result<Catalog, InvalidCatalog> {
        let endpoints: Vec<String> = self
            .endpoints
            .iter()
            .map(|endpoint| endpoint.name.clone())
            .collect();
        Catalog::new(
            self.sources.iter().map(Source::for_room).collect(),
            self.routes.iter().map(sections::Route::for_room).collect(),
            &endpoints,
        )
    }

    /// Makes endpoints as `outbound` takes them.
    pub(crate) fn endpoint_configs(&self) -> Vec<EndpointConfig> {
        self.endpoints.iter().map(sections::Endpoint::for_room).collect()
    }

    /// Returns how often each endpoint is tried, by its name.
    pub(crate) fn retry_policies(&self) -> HashMap<String, RetryPolicy> {
        self.endpoints
            .iter()
            .map(|endpoint| (endpoint.name.clone(), endpoint.retry.clone()))
            .collect()
    }
}
