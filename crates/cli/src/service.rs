//! Puts the rooms together and runs them until told to stop.
//!
//! Outages do not keep it from starting: only a mistake in the configuration does, or an address that
//! is taken.

use posthaste_jobs::chain;
use std::pin::pin;
use std::sync::Arc;

use posthaste_ingress::{Duty, Ingress, Probes};
use posthaste_queue::Queue;
use posthaste_store::Ledger;
use posthaste_workers::{Progress, Quarantine, Workers};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use crate::clock;
use crate::commands::ledger;
use crate::config::{Config, Scope, Settings};
use crate::failure::Failure;
use crate::reload::Live;
use crate::schema;
use crate::shutdown::Shutdown;
use crate::telemetry;

/// Which rooms a process holds.
pub(crate) struct Plan {
    /// As in the name of the subcommand.
    pub(crate) role: Role,
    /// Queues that its workers take jobs from.
    pub(crate) queues: Vec<posthaste_jobs::Queue>,
    /// In place of `workers.concurrency`.
    pub(crate) concurrency: Option<usize>,
    /// In place of `workers.listen`.
    pub(crate) probes: Option<String>,
}

/// What a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Takes events in and works on them.
    Up,
    /// Takes events in.
    Ingress,
    /// Works on jobs.
    Workers,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Ingress => "ingress",
            Self::Workers => "workers",
        }
    }

    const fn has_ingress(self) -> bool {
        matches!(self, Self::Up | Self::Ingress)
    }

    const fn has_workers(self) -> bool {
        matches!(self, Self::Up | Self::Workers)
    }
}

/// Runs until a signal says to stop, and what is running has ended.
///
/// # Errors
///
/// The configuration cannot be used, the address is taken, or a room ended by itself.
pub(crate) async fn run(plan: Plan, settings: Settings) -> Result<(), Failure> {
    let config = plan.configure(&settings)?;
    let _log = telemetry::start(&config.log, settings.environment())?;
    let live = Live::new(&config)?;
    let listener = match plan.role.has_ingress() {
        true => Some(bind("http.listen", &config.http.listen).await?),
        false => None,
    };
    let probes = match &config.workers.listen {
        Some(address) if plan.role.has_workers() => Some(bind("workers.listen", address).await?),
        _ => None,
    };
    let ledger = ledger::open(&config, &settings).await?;
    let queue = Queue::open(&config.queue.for_room(), posthaste_jobs::Queue::Webhooks)
        .await
        .map_err(|error| settings.blame("queue", "url", chain(&error)))?;
    info!(
        role = plan.role.name(),
        ledger = config.ledger.engine(),
        queue = config.queue.engine(),
        config = settings
            .file()
            .map_or_else(|| "defaults".to_owned(), |file| file.display().to_string()),
        "starting"
    );
    if plan.role.has_ingress() && config.sources.is_empty() {
        warn!(
            "no source is configured: every webhook is answered with 404 (posthaste config default shows how)"
        );
    }

    let tracker = TaskTracker::new();
    let shutdown = Shutdown::listen(&tracker, config.workers.grace.0).map_err(|error| handlers(&error))?;
    let mut migrating = pin!(schema::until_current(&ledger));
    let migrated = timeout(schema::PATIENCE, migrating.as_mut()).await.is_ok();
    if !migrated {
        warn!("starting without the ledger: events are answered with 503 until it is there");
    }
    let house = House {
        config,
        ledger: ledger.clone(),
        queue,
        live,
        shutdown,
        progress: Progress::default(),
    };
    let mut rooms = JoinSet::new();
    if let Some(listener) = listener {
        house.open_ingress(listener, plan.role, &mut rooms);
    }
    if let Some(listener) = probes {
        house.open_probes(listener, &mut rooms);
    }
    if plan.role.has_workers() {
        house.open_workers(&plan.queues, &mut rooms);
    }
    let House { live, shutdown, .. } = house;
    live.follow(settings, &tracker, shutdown.soft.clone())
        .map_err(|error| handlers(&error))?;

    let catching_up = async {
        if !migrated {
            shutdown.soft.run_until_cancelled(migrating).await;
        }
    };
    let ((), ending) = tokio::join!(catching_up, wait_for(rooms, &shutdown));
    shutdown.end();
    tracker.close();
    tracker.wait().await;
    ledger.close().await;
    info!("stopped");
    ending
}

impl Plan {
    /// Reads the configuration for this plan.
    fn configure(&self, settings: &Settings) -> Result<Config, Failure> {
        let mut config = settings.load(Scope::Everything)?;
        if let Some(concurrency) = self.concurrency {
            config.workers.concurrency = concurrency;
            config
                .workers
                .validate()
                .map_err(|error| Failure::usage(format!("--concurrency: {}", chain(&error))))?;
        }
        if let Some(address) = &self.probes {
            config.workers.listen = Some(address.clone());
        }
        if config.queue.is_local() && self.role != Role::Up {
            let role = self.role.name();
            return Err(Failure::usage(format!(
                "queue.url is \"local:\", a queue inside one process: `posthaste {role}` would share it with nobody"
            ))
            .hint("posthaste up")
            .hint(format!("POSTHASTE__QUEUE__URL=redis://127.0.0.1:6379 posthaste {role}")));
        }
        Ok(config)
    }
}

/// What the rooms of one process share.
struct House {
    config: Config,
    ledger: Ledger,
    queue: Queue,
    live: Live,
    shutdown: Shutdown,
    progress: Progress,
}

impl House {
    fn open_ingress(&self, listener: TcpListener, role: Role, rooms: &mut JoinSet<()>) {
        let ingress = Ingress {
            config: self.config.http.clone(),
            catalog: self.live.catalog(),
            ledger: self.ledger.clone(),
            queue: self.queue.clone(),
            clock: clock::system(),
            duty: match role.has_workers() {
                true => self.work(),
                false => Duty::Accept,
            },
        };
        if let Ok(address) = listener.local_addr() {
            info!(%address, "listening on {address}");
        }
        rooms.spawn(ingress.serve(listener, self.shutdown.soft.clone(), self.shutdown.hard.clone()));
    }

    fn open_probes(&self, listener: TcpListener, rooms: &mut JoinSet<()>) {
        let probes = Probes {
            config: self.config.http.clone(),
            ledger: self.ledger.clone(),
            queue: self.queue.clone(),
            duty: self.work(),
        };
        if let Ok(address) = listener.local_addr() {
            info!(%address, "answering /healthz and /readyz on {address}");
        }
        rooms.spawn(probes.serve(listener, self.shutdown.soft.clone(), self.shutdown.hard.clone()));
    }

    fn work(&self) -> Duty {
        let progress = self.progress.clone();
        Duty::Work(Arc::new(move || progress.stuck()))
    }

    /// Shares the queue with the ingress, if there is one: what it pushes is what these workers fetch.
    fn open_workers(&self, queues: &[posthaste_jobs::Queue], rooms: &mut JoinSet<()>) {
        let quarantine = Quarantine::default();
        for name in queues {
            let workers = Workers {
                ledger: self.ledger.clone(),
                queue: self.queue.clone(),
                name: *name,
                endpoints: self.live.endpoints(),
                policies: self.live.policies(),
                clock: clock::system(),
                quarantine: quarantine.clone(),
                progress: self.progress.clone(),
                config: self.config.workers.clone(),
            };
            rooms.spawn(workers.run(self.shutdown.soft.clone(), self.shutdown.hard.clone()));
        }
    }
}

/// Waits until every room has ended. One that ends before it is told to takes the others along: a
/// process that does half of its work would look well to whoever watches it.
async fn wait_for(mut rooms: JoinSet<()>, shutdown: &Shutdown) -> Result<(), Failure> {
    let mut ending = Ok(());
    while let Some(room) = rooms.join_next().await {
        let expected = room.is_ok() && shutdown.soft.is_cancelled();
        if !expected {
            let why = room
                .err()
                .map_or_else(|| "it returned".to_owned(), |error| error.to_string());
            error!(error = why, "a room ended by itself, stopping");
            ending = Err(Failure::failed(format!("a room ended by itself: {why}")));
            shutdown.soft.cancel();
        }
    }
    ending
}

async fn bind(key: &str, address: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        let variable = key.to_uppercase().replace('.', "__");
        Failure::failed(format!("{key}: cannot listen on {address}: {error}"))
            .hint(format!("POSTHASTE__{variable}=127.0.0.1:0 posthaste up"))
    })
}

fn handlers(error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot listen for signals: {error}"))
}
