use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use http::StatusCode;
use posthaste_jobs::Clock;
use tokio::sync::watch;

use crate::body::Budget;
use crate::downstream::Downstream;
use crate::problem::Problem;
use crate::pusher::Pusher;
use crate::readiness::Readiness;
use crate::rejections::Rejections;
use crate::{Catalog, Config, webhook};

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) catalog: watch::Receiver<Arc<Catalog>>,
    pub(crate) clock: Clock,
    pub(crate) downstream: Arc<dyn Downstream>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) pusher: Pusher,
    pub(crate) rejections: Arc<Rejections>,
    pub(crate) readiness: Arc<Readiness>,
}

/// Who sent a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client(pub(crate) SocketAddr);

/// Makes the routes of the ingress.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let readiness = Arc::clone(&shared.readiness);
    Router::new()
        .route("/webhooks/{source}", any(webhook::receive))
        .with_state(shared)
        .merge(probes(readiness))
}

/// Makes the routes that tell how the process is.
pub(crate) fn probes(readiness: Arc<Readiness>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n").fallback(get_only))
        .route("/readyz", get(ready).fallback(get_only))
        .fallback(not_found)
        .with_state(readiness)
}

async fn ready(State(readiness): State<Arc<Readiness>>) -> Response {
    readiness.answer().await
}

async fn get_only() -> Response {
    method_not_allowed("GET, HEAD").into_response()
}

async fn not_found() -> Response {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "there is nothing at this path",
    )
    .into_response()
}

/// The answer to a method that a path has no use for.
pub(crate) fn method_not_allowed(allowed: &'static str) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("this path takes {allowed}"),
    )
    .allow(allowed)
}
