use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::downstream::{Answer, Downstream};
use crate::problem::Problem;

/// How long an answer serves all who ask.
const FRESH: Duration = Duration::from_secs(1);
/// How long a dependency may take to say that it is well.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the process can do its work. Asking often costs its dependencies nothing.
pub(crate) struct Readiness {
    downstream: Arc<dyn Downstream>,
    known: Mutex<Option<(Instant, Health)>>,
}

/// What ails each dependency.
#[derive(Clone, Default)]
struct Health {
    ledger: Option<String>,
    queue: Option<String>,
}

impl Readiness {
    pub(crate) fn new(downstream: Arc<dyn Downstream>) -> Self {
        Self {
            downstream,
            known: Mutex::new(None),
        }
    }

    /// Answers 200, or 503 with a reason for each dependency that is missing.
    pub(crate) async fn answer(&self) -> Response {
        let Health { ledger, queue } = self.health().await;
        let word = |ailment: &Option<String>| ailment.clone().unwrap_or_else(|| "ok".to_owned());
        let (ledger_word, queue_word) = (word(&ledger), word(&queue));
        if ledger.is_none() && queue.is_none() {
            return Json(json!({"status": "ready", "ledger": ledger_word, "queue": queue_word}))
                .into_response();
        }
        let missing = match (&ledger, &queue) {
            (Some(_), Some(_)) => "ledger and queue",
            (Some(_), None) => "ledger",
            _ => "queue",
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
            ailment(self.downstream.check_ledger()),
            ailment(self.downstream.check_queue())
        );
        let health = Health { ledger, queue };
        *known = Some((Instant::now(), health.clone()));
        health
    }
}

/// Says what is wrong without its causes, which may name hosts and users.
async fn ailment<E: Display>(check: Answer<'_, Result<(), E>>) -> Option<String> {
    match timeout(PATIENCE, check).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer within {}s", PATIENCE.as_secs())),
    }
}
