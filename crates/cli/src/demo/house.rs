use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use posthaste_ingress::{Catalog, Config as HttpConfig, Duty, Ingress, RouteConfig, Scheme, SourceConfig};
use posthaste_jobs::{Clock, Priority, RetryPolicy, Span};
use posthaste_outbound::{BreakerConfig, EndpointConfig, Endpoints};
use posthaste_queue::Queue;
use posthaste_store::Ledger;
use posthaste_workers::{Progress, Quarantine, Workers};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::receiver::Receiver;

/// Secret shared with the pretended GitHub.
pub(super) const GITHUB_SECRET: &str = "a secret that only GitHub and this demo know";
/// Secret shared with the pretended Stripe.
pub(super) const STRIPE_SECRET: &str = "whsec_demo_of_posthaste";
/// Secret by which deliveries are signed: `whsec_` and 24 bytes in base64.
pub(super) const SIGNING_SECRET: &str = "whsec_cG9zdGhhc3RlLWRlbW8tc2lnbmluZy1rZXk=";
/// How long a breaker stays open in the demo.
pub(super) const COOLDOWN: Duration = Duration::from_secs(2);
/// How often each endpoint is tried in the demo.
pub(super) const ATTEMPTS: u32 = 3;

/// Posthaste on its own, in a folder that goes away: ledger, queue, ingress, workers.
pub(super) struct House {
    pub(super) address: SocketAddr,
    pub(super) ledger: Ledger,
    pub(super) endpoints: Endpoints,
    soft: CancellationToken,
    hard: CancellationToken,
}

impl House {
    /// Starts everything, with the demo's sources, endpoints and routes.
    pub(super) async fn start(
        folder: &Path,
        receiver: &Receiver,
        clock: Clock,
        tracker: &TaskTracker,
    ) -> Result<Self> {
        let url = format!("sqlite:{}", folder.join("ledger.db").display());
        let ledger = Ledger::open(&posthaste_store::Config {
            url,
            ..Default::default()
        })
        .await?;
        ledger.migrate().await.context("could not prepare the ledger")?;
        let queue = Queue::open(
            &posthaste_queue::Config::default(),
            posthaste_jobs::Queue::Webhooks,
        )
        .await?;

        let endpoint = |name: &str| EndpointConfig {
            name: name.to_owned(),
            url: receiver.url(&format!("/{name}")),
            timeout: Duration::from_secs(5),
            max_in_flight: 32,
            signing_secret: Some(SIGNING_SECRET.to_owned()),
            breaker: BreakerConfig {
                failure_rate: 0.5,
                min_calls: ATTEMPTS,
                window: Duration::from_secs(30),
                cooldown: COOLDOWN,
            },
        };
        let names = ["repositories", "payments", "invoices"];
        let endpoints = Endpoints::new(names.iter().copied().map(endpoint).collect())?;
        let retry = RetryPolicy {
            max_attempts: ATTEMPTS,
            base: Span(Duration::from_millis(200)),
            ..RetryPolicy::default()
        };
        let policies: HashMap<String, RetryPolicy> = names
            .iter()
            .map(|name| ((*name).to_owned(), retry.clone()))
            .collect();

        let source = |name: &str, scheme: Scheme, secret: &str| SourceConfig {
            name: name.to_owned(),
            scheme,
            secrets: vec![secret.to_owned()],
            tolerance: None,
            max_body: None,
        };
        let route = |source: &str, types: &str, endpoint: &str| RouteConfig {
            source: source.to_owned(),
            event_types: vec![types.to_owned()],
            endpoint: endpoint.to_owned(),
            priority: Priority::Normal,
        };
        let catalog = Catalog::new(
            vec![
                source("github", Scheme::Github, GITHUB_SECRET),
                source("stripe", Scheme::Stripe, STRIPE_SECRET),
            ],
            vec![
                route("github", "*", "repositories"),
                route("stripe", "payment_intent.*", "payments"),
                route("stripe", "invoice.*", "invoices"),
            ],
            &names.map(str::to_owned),
        )?;

        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let house = Self {
            address: listener.local_addr()?,
            ledger: ledger.clone(),
            endpoints: endpoints.clone(),
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
        };
        let ingress = Ingress {
            config: HttpConfig::default(),
            catalog: watch::Sender::new(Arc::new(catalog)).subscribe(),
            ledger: ledger.clone(),
            queue: queue.clone(),
            clock: Arc::clone(&clock),
            duty: Duty::Accept,
        };
        let workers = Workers {
            ledger,
            queue,
            name: posthaste_jobs::Queue::Webhooks,
            endpoints,
            policies: watch::Sender::new(Arc::new(policies)).subscribe(),
            clock,
            quarantine: Quarantine::default(),
            progress: Progress::default(),
            config: posthaste_workers::Config::default(),
        };
        tracker.spawn(ingress.serve(listener, house.soft.clone(), house.hard.clone()));
        tracker.spawn(workers.run(house.soft.clone(), house.hard.clone()));
        Ok(house)
    }

    /// Where a source's webhooks go.
    pub(super) fn webhook(&self, source: &str) -> String {
        format!("http://{}/webhooks/{source}", self.address)
    }

    /// Stops the processes; their folder may go.
    pub(super) async fn stop(self) {
        self.soft.cancel();
        self.hard.cancel();
        self.ledger.close().await;
    }
}
