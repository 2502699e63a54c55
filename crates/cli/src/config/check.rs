//! What types cannot say: references between sections, secrets that must be found, numbers that only
//! make sense together. The rooms check what is theirs; this asks them item by item, so that each
//! mistake gets its line.

use posthaste_ingress::{Catalog, InvalidCatalog};
use posthaste_jobs::chain;
use posthaste_outbound::Endpoints;
use posthaste_workers::InvalidConfig;
use tracing_subscriber::EnvFilter;

use super::env::Environment;
use super::origin::Path;
use super::problem::Problem;
use super::secret::Secret;
use super::tree::Entry;
use super::{Config, Scope};
use crate::nearest::nearest;

/// What is wrong with a `max_body` that no request could use up.
const OVER_IN_FLIGHT: &str =
    "expected at most http.max_body_in_flight, or the largest body would never be taken";

/// Resolves the secrets in `scope` and returns every mistake.
pub(super) fn problems(
    config: &mut Config,
    scope: Scope,
    root: &Entry,
    environment: &Environment,
) -> Vec<Problem> {
    let mut findings = Findings {
        root,
        environment,
        problems: Vec::new(),
    };
    let top = Path::default();

    findings.log(config, &top.key("log"));
    if matches!(scope, Scope::Everything | Scope::Ledger | Scope::Queues) {
        findings.ledger(config, &top.key("ledger"));
    }
    if matches!(scope, Scope::Everything | Scope::Sources) {
        findings.http(config, &top.key("http"));
        findings.sources(config, &top.key("sources"));
    }
    if matches!(scope, Scope::Everything | Scope::Queues) {
        findings.queue(config, &top.key("queue"));
    }
    if scope == Scope::Everything {
        if let Err(error) = config.workers.validate() {
            let InvalidConfig::Concurrency(_) = error;
            findings.add(&top.key("workers").key("concurrency"), chain(&error));
        }
        if let Some(address) = &config.workers.listen {
            findings.listen(address, &top.key("workers").key("listen"));
        }
        findings.endpoints(config, &top.key("endpoints"));
        findings.routes(config, &top.key("routes"));
        findings.whole(config, &top.key("routes"));
    }
    findings.problems
}

/// Returns the place, in a source's entry at `path`, that an error is about.
fn place(error: &InvalidCatalog, path: Path) -> Path {
    match error {
        InvalidCatalog::SourceName { .. } => path.key("name"),
        InvalidCatalog::NoSecret { .. } | InvalidCatalog::UnusedSecret { .. } => path.key("secrets"),
        InvalidCatalog::Secret { position, .. } => path.key("secrets").index(position.saturating_sub(1)),
        InvalidCatalog::UnusedTolerance { .. } => path.key("tolerance"),
        _ => path,
    }
}

struct Findings<'a> {
    root: &'a Entry,
    environment: &'a Environment,
    problems: Vec<Problem>,
}

impl Findings<'_> {
    fn add(&mut self, path: &Path, message: impl Into<String>) {
        self.add_with_hint(path, message, None);
    }

    fn add_with_hint(&mut self, path: &Path, message: impl Into<String>, hint: Option<String>) {
        self.problems
            .push(Problem::new(self.root.locate(path), path.clone(), message).hint(hint));
    }

    /// Resolves a secret; tells whether it can be used.
    fn resolve(&mut self, secret: &mut Secret, path: &Path) -> bool {
        match secret.resolve(self.environment) {
            Ok(()) if secret.expose().is_empty() => {
                self.add(path, "the secret is empty");
                false
            }
            Ok(()) => true,
            Err(unresolved) => {
                self.add_with_hint(path, unresolved.message, Some(unresolved.hint));
                false
            }
        }
    }

    fn log(&mut self, config: &Config, path: &Path) {
        if let Err(error) = EnvFilter::try_new(&config.log.filter) {
            let message = format!("expected a filter like \"info,posthaste_workers=debug\": {error}");
            self.add(&path.key("filter"), message);
        }
    }

    fn ledger(&mut self, config: &mut Config, path: &Path) {
        let ledger = &mut config.ledger;
        if self.resolve(&mut ledger.url, &path.key("url")) {
            let known = ["sqlite:", "postgres://", "postgresql://"];
            self.url(
                &ledger.url,
                &known,
                "sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE",
                &path.key("url"),
            );
        }
    }

    fn queue(&mut self, config: &mut Config, path: &Path) {
        let queue = &mut config.queue;
        if self.resolve(&mut queue.url, &path.key("url")) {
            let known = [
                "local:",
                "redis://",
                "rediss://",
                "redis-sentinel://",
                "rediss-sentinel://",
                "redis-cluster://",
                "rediss-cluster://",
            ];
            self.url(
                &queue.url,
                &known,
                "local:, redis://HOST:PORT, redis-sentinel://HOST:PORT/MASTER or redis-cluster://HOST:PORT, with rediss for TLS",
                &path.key("url"),
            );
        }
    }

    /// Checks how a URL begins. Shows no more of it than that: the rest may be a password.
    fn url(&mut self, url: &Secret, known: &[&str], expected: &str, path: &Path) {
        if known.iter().any(|start| url.expose().starts_with(start)) {
            return;
        }
        let hint = url.expose().split_once(':').and_then(|(scheme, _)| {
            let schemes = known.iter().filter_map(|start| start.split(':').next());
            nearest(scheme, schemes).map(|near| format!("did you mean {near:?}?"))
        });
        self.add_with_hint(path, format!("expected {expected}"), hint);
    }

    fn listen(&mut self, address: &str, path: &Path) {
        let is_host = |host: &str| !host.is_empty() && !host.contains(char::is_whitespace);
        let port = address
            .rsplit_once(':')
            .filter(|(host, _)| is_host(host))
            .and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() {
            let message = format!("expected an address like \"127.0.0.1:8080\", found {address:?}");
            self.add(path, message);
        }
    }

    fn http(&mut self, config: &Config, path: &Path) {
        let http = &config.http;
        self.listen(&http.listen, &path.key("listen"));
        for (key, size) in [
            ("max_body", http.max_body),
            ("max_body_in_flight", http.max_body_in_flight),
            ("max_headers", http.max_headers),
        ] {
            if size.as_u64() == 0 {
                self.add(&path.key(key), "expected at least 1 byte, found 0");
            }
        }
        if http.max_body > http.max_body_in_flight {
            self.add(&path.key("max_body"), OVER_IN_FLIGHT);
        }
        if http.read_timeout.0.is_zero() {
            self.add(&path.key("read_timeout"), "expected more than no time");
        }
    }

    fn sources(&mut self, config: &mut Config, path: &Path) {
        let mut names: Vec<String> = Vec::new();
        let in_flight = config.http.max_body_in_flight;
        for (index, source) in config.sources.iter_mut().enumerate() {
            let path = path.index(index);
            match source.max_body {
                Some(size) if size.as_u64() == 0 => {
                    self.add(&path.key("max_body"), "expected at least 1 byte, found 0");
                }
                Some(size) if size > in_flight => self.add(&path.key("max_body"), OVER_IN_FLIGHT),
                _ => {}
            }
            let mut usable = true;
            for (place, secret) in source.secrets.iter_mut().enumerate() {
                usable &= self.resolve(secret, &path.key("secrets").index(place));
            }
            if names.contains(&source.name) {
                self.add(
                    &path.key("name"),
                    format!("another source is called {:?} already", source.name),
                );
            }
            names.push(source.name.clone());
            if usable && let Err(error) = Catalog::new(vec![source.for_room()], Vec::new(), &[]) {
                self.add(&place(&error, path), chain(&error));
            }
        }
    }

    fn endpoints(&mut self, config: &mut Config, path: &Path) {
        let mut names: Vec<String> = Vec::new();
        for (index, endpoint) in config.endpoints.iter_mut().enumerate() {
            let path = path.index(index);
            let mut usable = self.resolve(&mut endpoint.url, &path.key("url"));
            if let Some(secret) = &mut endpoint.signing_secret {
                usable &= self.resolve(secret, &path.key("signing_secret"));
            }
            if names.contains(&endpoint.name) {
                self.add(
                    &path.key("name"),
                    format!("another endpoint is called {:?} already", endpoint.name),
                );
            }
            names.push(endpoint.name.clone());
            if let Err(error) = endpoint.retry.validate() {
                self.add(&path.key("retry"), chain(&error));
            }
            if usable && let Err(error) = Endpoints::new(vec![endpoint.for_room()]) {
                let place = error.key().split('.').fold(path, |path, key| path.key(key));
                self.add(&place, chain(&error));
            }
        }
    }

    fn routes(&mut self, config: &Config, path: &Path) {
        let sources: Vec<&str> = config.sources.iter().map(|source| source.name.as_str()).collect();
        let endpoints: Vec<&str> = config
            .endpoints
            .iter()
            .map(|endpoint| endpoint.name.as_str())
            .collect();
        for (index, route) in config.routes.iter().enumerate() {
            let path = path.index(index);
            self.known("source", &route.source, &sources, &path.key("source"));
            self.known("endpoint", &route.endpoint, &endpoints, &path.key("endpoint"));
            for (place, event_type) in route.event_types.iter().enumerate() {
                if event_type.is_empty() {
                    let message = "expected an event type, or \"*\" for all, found nothing";
                    self.add(&path.key("event_types").index(place), message);
                }
            }
        }
    }

    fn known(&mut self, what: &str, name: &str, known: &[&str], path: &Path) {
        if known.contains(&name) {
            return;
        }
        let list = if known.is_empty() {
            "none".to_owned()
        } else {
            known.join(", ")
        };
        let hint = nearest(name, known.iter().copied()).map(|near| format!("did you mean {near:?}?"));
        self.add_with_hint(path, format!("no {what} is called {name:?}, known: {list}"), hint);
    }

    /// Asks the rooms about everything together, for what item by item does not show.
    fn whole(&mut self, config: &Config, path: &Path) {
        if !self.problems.is_empty() {
            return;
        }
        if let Err(error) = config.catalog() {
            self.add(path, chain(&error));
        }
        if let Err(error) = Endpoints::new(config.endpoint_configs()) {
            self.add(&Path::default().key("endpoints"), chain(&error));
        }
    }
}
