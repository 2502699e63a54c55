use std::time::Duration;

use bytes::Bytes;
use http::header::LOCATION;
use reqwest::{Client, Request, Response, Url};
use tokio::time::Instant;

use crate::deadline::Deadline;
use crate::retry_after::retry_after;
use crate::{CAPTURE, CallError, Receipt};

/// Sends `request` and returns what came of it within `limit`; `now` is in seconds since the epoch.
pub(crate) async fn send(
    client: &Client,
    request: Request,
    limit: Duration,
    now: i64,
) -> Result<Receipt, CallError> {
    let began = Instant::now();
    let mut deadline = Deadline::after(limit);
    let answer = deadline.meet(client.execute(request)).await;
    let answer = answer.ok_or(CallError::Timeout(limit))?;
    let mut answer = answer.map_err(CallError::from_transport)?;
    let answered_at = now.saturating_add_unsigned(began.elapsed().as_secs());
    let response = capture(&mut answer, &mut deadline).await;

    let status = answer.status();
    if status.is_success() {
        return Ok(Receipt {
            status: status.as_u16(),
            response,
        });
    }
    Err(CallError::Status {
        status: status.as_u16(),
        retry_after: retry_after(answer.headers(), answered_at),
        response,
        location: location(&answer),
    })
}

/// Reads the body up to [`CAPTURE`], its end or the deadline.
///
/// The status has come, and it decides: a body that fails says nothing against it.
async fn capture(answer: &mut Response, deadline: &mut Deadline) -> Bytes {
    let mut captured = Vec::new();
    while captured.len() < CAPTURE {
        let Some(Ok(Some(chunk))) = deadline.meet(answer.chunk()).await else {
            break;
        };
        let room = CAPTURE - captured.len();
        captured.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    captured.into()
}

/// Returns where a redirect points to, without path, query, user and password.
fn location(answer: &Response) -> Option<String> {
    let text = answer.headers().get(LOCATION)?.to_str().ok()?;
    let target: Url = answer.url().join(text).ok()?;
    Some(match target.host_str() {
        Some(host) if !host.is_empty() => host.to_owned(),
        _ => format!("{}:", target.scheme()),
    })
}
