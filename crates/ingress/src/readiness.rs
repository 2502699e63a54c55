use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use posthaste_queue::Probe;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::downstream::{Answer, Downstream};
use crate::problem::Problem;

/// How long an answer serves all who ask.
const FRESH: Duration = Duration::from_secs(1);
/// How long a dependency may take to say that it is well. More than the queue gives its Redis, whose reason is the better one.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long no job may get on until that is no coincidence.
const STUCK: Duration = Duration::from_secs(10);

/// What a process is asked about when it is asked whether it is ready.
#[derive(Clone)]
pub enum Duty {
    /// It accepts events. If nobody works on their jobs it is still of use, and says so in a warning.
    Accept,
    /// It works on jobs. If they do not get on it is not ready.
    Work(Stuck),
}

/// Tells for how long no job could be claimed or settled, if the last one could not.
pub type Stuck = Arc<dyn Fn() -> Option<Duration> + Send + Sync>;

/// Whether the process can do its work. Asking often costs its dependencies nothing.
pub(crate) struct Readiness {
    downstream: Arc<dyn Downstream>,
    duty: Duty,
    known: Mutex<Option<(Instant, Health)>>,
}

/// What ails each dependency, and what does not keep the process from its work.
#[derive(Clone, Default)]
struct Health {
    ledger: Option<String>,
    queue: Option<String>,
    warnings: Vec<String>,
}

impl Readiness {
    pub(crate) fn new(downstream: Arc<dyn Downstream>, duty: Duty) -> Self {
        Self {
            downstream,
            duty,
            known: Mutex::new(None),
        }
    }

    /// Answers 200, or 503 with a reason for each dependency that is missing.
    pub(crate) async fn answer(&self) -> Response {
        let Health {
            ledger,
            queue,
            warnings,
        } = self.health().await;
        let word = |ailment: &Option<String>| ailment.clone().unwrap_or_else(|| "ok".to_owned());
        let (ledger_word, queue_word) = (word(&ledger), word(&queue));
        let missing = match (&ledger, &queue) {
            (None, None) => {
                let body = json!({
                    "status": "ready", "ledger": ledger_word, "queue": queue_word, "warnings": warnings
                });
                return Json(body).into_response();
            }
            (Some(_), Some(_)) => "ledger and queue",
            (Some(_), None) => "ledger",
            (None, Some(_)) => "queue",
        };
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "not_ready",
            format!("not ready: {missing}"),
        )
        .member("ledger", ledger_word)
        .member("queue", queue_word)
        .into_response()
    }

    /// Asks the dependencies, once for all who wait.
    async fn health(&self) -> Health {
        let mut known = self.known.lock().await;
        if let Some((asked_at, health)) = &*known
            && asked_at.elapsed() < FRESH
        {
            return health.clone();
        }
        let (ledger, queue) = tokio::join!(
            within(self.downstream.check_ledger()),
            within(self.downstream.check_queue())
        );
        let health = self.diagnose(ledger, queue);
        *known = Some((Instant::now(), health.clone()));
        health
    }

    fn diagnose(&self, ledger: Result<(), String>, queue: Result<Probe, String>) -> Health {
        let mut health = Health {
            ledger: ledger.err(),
            ..Health::default()
        };
        let stall = match queue {
            Ok(probe) => {
                health.warnings.extend(eviction(&probe));
                stall(&probe)
            }
            Err(ailment) => {
                health.queue = Some(ailment);
                None
            }
        };
        match &self.duty {
            Duty::Accept => health.warnings.extend(stall),
            Duty::Work(stuck) => {
                health.queue = health.queue.or(stall);
                let stuck = stuck().filter(|since| *since >= STUCK);
                health.ledger = health.ledger.or(stuck.map(|since| {
                    let seconds = since.as_secs();
                    format!("no job could be claimed or settled for {seconds}s")
                }));
            }
        }
        health
    }
}

fn stall(probe: &Probe) -> Option<String> {
    let due = probe.survey.stalled()?;
    Some(format!(
        "nobody takes jobs: the oldest has been due for {}s",
        due.as_secs()
    ))
}

fn eviction(probe: &Probe) -> Option<String> {
    let server = probe.server.as_ref().filter(|server| server.evicts())?;
    Some(format!(
        "redis may throw jobs out of the queue: maxmemory-policy is {}",
        server.policy
    ))
}

/// Says what is wrong without its causes, which may name hosts and users.
async fn within<T, E: Display>(check: Answer<'_, Result<T, E>>) -> Result<T, String> {
    match timeout(PATIENCE, check).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {}s", PATIENCE.as_secs())),
    }
}
