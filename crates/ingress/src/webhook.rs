//! `POST /webhooks/{source}`: limits, verification, identity, ledger, in this order.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use posthaste_jobs::{EventId, Lane, Timestamp};
use posthaste_queue::Entry;
use posthaste_store::{Accepted, Headers, NewEvent, NewJob};
use serde::Serialize;
use tracing::debug;

use crate::body;
use crate::identity::{Identity, identify};
use crate::problem::Problem;
use crate::rejected::Rejected;
use crate::router::{Client, Shared, method_not_allowed};
use crate::source::{Source, Trust};

/// Bodies up to this size are digested in place; a larger one would hold up the requests beside it.
const DIGESTED_IN_PLACE: usize = 256 * 1024;
/// How long the ledger may take. GitHub hangs up after 10 s, and few providers wait longer.
const LEDGER_TIMEOUT: Duration = Duration::from_secs(9);

/// What the sender of an accepted event is told.
#[derive(Serialize)]
struct Receipt {
    event_id: EventId,
    status: &'static str,
}

pub(crate) async fn receive(
    State(shared): State<Arc<Shared>>,
    Extension(Client(client)): Extension<Client>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    if request.method() != Method::POST {
        return method_not_allowed("POST").into_response();
    }
    let source = path
        .ok()
        .and_then(|Path(name)| shared.catalog.borrow().source(&name).map(Arc::clone));
    let Some(source) = source else {
        debug!(client.address = %client, "refused a request to a source that is not there");
        return unknown_source().into_response();
    };
    match accept(&shared, &source, request).await {
        Ok(receipt) => {
            debug!(source.name = source.name, event.id = %receipt.event_id, "{} an event", receipt.status);
            Json(receipt).into_response()
        }
        Err(rejected) => {
            let problem = rejected.problem();
            let cause = rejected.cause().unwrap_or(problem.code());
            shared
                .rejections
                .note(&source.name, cause, client, rejected.error());
            problem.into_response()
        }
    }
}

async fn accept(shared: &Shared, source: &Arc<Source>, request: Request) -> Result<Receipt, Rejected> {
    let (head, body) = request.into_parts();
    let limit = shared.config.max_headers.as_u64();
    if size(&head.headers) > limit {
        return Err(Rejected::HeadersTooLarge { limit });
    }
    let limit = source
        .max_body
        .unwrap_or(shared.config.max_body.as_u64())
        .min(shared.config.max_body_in_flight.as_u64());
    let received = body::read(body, limit, &shared.budget, shared.config.read_timeout.0)
        .await
        .map_err(|why| Rejected::Body { why, limit })?;

    let now = (shared.clock)();
    let (headers, identity) = name_verified(source, head.headers, received.bytes.clone(), now).await?;
    let event = new_event(source, &headers, identity, received.bytes.clone(), now);
    let id = event.id;
    let entries: Vec<Entry> = event.jobs.iter().map(entry).collect();

    let accepted = tokio::time::timeout(LEDGER_TIMEOUT, shared.downstream.accept(event))
        .await
        .map_err(|_| Rejected::LedgerTooSlow)?
        .map_err(Rejected::Ledger)?;
    Ok(match accepted {
        Accepted::New => {
            shared.pusher.hand_in(entries.into_iter());
            Receipt {
                event_id: id,
                status: "accepted",
            }
        }
        Accepted::Duplicate(first) => Receipt {
            event_id: first,
            status: "duplicate",
        },
    })
}

/// Verifies and names, away from the other requests if the body is large.
async fn name_verified(
    source: &Arc<Source>,
    headers: HeaderMap,
    body: Bytes,
    now: Timestamp,
) -> Result<(HeaderMap, Identity), Rejected> {
    if body.len() <= DIGESTED_IN_PLACE {
        return verify_and_name(source, &headers, &body, now).map(|identity| (headers, identity));
    }
    let source = Arc::clone(source);
    let digesting = tokio::task::spawn_blocking(move || {
        verify_and_name(&source, &headers, &body, now).map(|identity| (headers, identity))
    });
    digesting.await.map_err(|_| Rejected::Panicked)?
}

fn verify_and_name(
    source: &Source,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<Identity, Rejected> {
    let rules = match &source.trust {
        Trust::Signed(verifier) => {
            verifier
                .verify(headers, body, now)
                .map_err(Rejected::Unverified)?;
            Some(verifier.rules())
        }
        Trust::Anyone => None,
    };
    identify(rules, headers, body).map_err(Rejected::Ambiguous)
}

fn new_event(
    source: &Source,
    headers: &HeaderMap,
    identity: Identity,
    body: Bytes,
    now: Timestamp,
) -> NewEvent {
    let jobs = source.deliveries(identity.event_type.as_deref(), now);
    let headers = headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes())))
        .collect();
    NewEvent {
        id: EventId::new(now, rand::random()),
        source: source.name.clone(),
        provider_id: identity.provider_id,
        event_type: identity.event_type,
        headers: Headers::new(headers),
        body,
        jobs,
    }
}

/// What the queue should hold of a job that was accepted.
fn entry(job: &NewJob) -> Entry {
    Entry {
        job: job.id,
        wait: job.wait,
        lane: Lane::of(job.priority, false),
    }
}

/// Counts names and values, with what stands between them on the wire.
fn size(headers: &HeaderMap) -> u64 {
    headers
        .iter()
        .map(|(name, value)| (name.as_str().len() + value.len() + ": \r\n".len()) as u64)
        .sum()
}

fn unknown_source() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "unknown_source",
        "no source of this name is configured",
    )
}
