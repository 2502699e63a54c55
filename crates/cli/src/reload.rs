//! `SIGHUP`: sources, endpoints and routes are read again. A file with a mistake changes nothing.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use posthaste_ingress::Catalog;
use posthaste_jobs::{RetryPolicy, chain};
use posthaste_outbound::Endpoints;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info};

use crate::config::{Config, Scope, Settings};
use crate::failure::Failure;

/// What can change while a process runs.
pub(crate) struct Live {
    catalog: watch::Sender<Arc<Catalog>>,
    policies: watch::Sender<Arc<HashMap<String, RetryPolicy>>>,
    endpoints: Endpoints,
}

impl Live {
    /// Takes the first state from a configuration that has been checked.
    ///
    /// # Errors
    ///
    /// The rooms refuse it all the same.
    pub(crate) fn new(config: &Config) -> Result<Self, Failure> {
        let catalog = config.catalog().map_err(|error| Failure::usage(chain(&error)))?;
        let endpoints =
            Endpoints::new(config.endpoint_configs()).map_err(|error| Failure::usage(chain(&error)))?;
        Ok(Self {
            catalog: watch::Sender::new(Arc::new(catalog)),
            policies: watch::Sender::new(Arc::new(config.retry_policies())),
            endpoints,
        })
    }

    /// Returns sources and routes as they are and will be.
    pub(crate) fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    /// Returns retry policies as they are and will be.
    pub(crate) fn policies(&self) -> watch::Receiver<Arc<HashMap<String, RetryPolicy>>> {
        self.policies.subscribe()
    }

    /// Returns the endpoints; clones follow each reload.
    pub(crate) fn endpoints(&self) -> Endpoints {
        self.endpoints.clone()
    }

    /// Reloads on each `SIGHUP` until `stop`.
    ///
    /// # Errors
    ///
    /// The operating system refuses the handler.
    pub(crate) fn follow(
        self,
        settings: Settings,
        tracker: &TaskTracker,
        stop: CancellationToken,
    ) -> io::Result<()> {
        let hangups = signal(SignalKind::hangup())?;
        tracker.spawn(async move { self.run(&settings, hangups, &stop).await });
        Ok(())
    }

    async fn run(&self, settings: &Settings, mut hangups: Signal, stop: &CancellationToken) {
        while stop.run_until_cancelled(hangups.recv()).await.is_some() {
            match self.reload(settings) {
                Ok(config) => info!(
                    sources = config.sources.len(),
                    endpoints = config.endpoints.len(),
                    routes = config.routes.len(),
                    "reloaded sources, endpoints and routes"
                ),
                Err(problem) => error!(error = problem, "the configuration is refused, the old one stays"),
            }
        }
    }

    /// Reads everything again; all of it is taken or nothing.
    fn reload(&self, settings: &Settings) -> Result<Config, String> {
        let config = settings
            .load(Scope::Everything)
            .map_err(|error| error.to_string().replace('\n', "; "))?;
        let catalog = config.catalog().map_err(|error| chain(&error))?;
        self.endpoints
            .reload(config.endpoint_configs())
            .map_err(|error| chain(&error))?;
        self.policies.send_replace(Arc::new(config.retry_policies()));
        self.catalog.send_replace(Arc::new(catalog));
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    const SOURCE: &str = "[[sources]]\nname = \"github\"\nscheme = \"github\"\nsecrets = [\"x\"]\n";
    const ENDPOINT: &str = "[[endpoints]]\nname = \"orders\"\nurl = \"http://127.0.0.1:9/\"\n";
    const ROUTE: &str = "[[routes]]\nsource = \"github\"\nendpoint = \"orders\"\n";

    #[test]
    fn a_reload_takes_all_of_a_good_file_and_nothing_of_a_bad_one() {
        // As main does: endpoints speak TLS.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("posthaste.toml");
        let settings = Settings::new(Some(file.clone()), Environment::default());
        std::fs::write(&file, SOURCE).unwrap();
        let live = Live::new(&settings.load(Scope::Everything).unwrap()).unwrap();
        let (catalog, policies) = (live.catalog(), live.policies());
        let goes_to = || {
            catalog
                .borrow()
                .deliveries("github", Some("push"), crate::clock::now())
                .len()
        };
        assert_eq!(goes_to(), 0);

        std::fs::write(&file, format!("{SOURCE}{ENDPOINT}{ROUTE}")).unwrap();
        live.reload(&settings).unwrap();
        assert_eq!(goes_to(), 1);
        assert!(policies.borrow().contains_key("orders"));

        std::fs::write(&file, format!("{SOURCE}{ROUTE}")).unwrap();
        let refused = live.reload(&settings).unwrap_err();
        assert!(refused.contains("posthaste.toml:7"), "{refused}");
        assert_eq!(goes_to(), 1);
        assert!(policies.borrow().contains_key("orders"));
    }
}
