//! Takes one event to one endpoint.
//!
//! Run twice, it may deliver twice: a remote POST cannot be undone or looked up. The window is a crash
//! between the endpoint's answer and our commit. Both copies carry the same `webhook-id`.

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use posthaste_jobs::{Decision, Timestamp, WebhookDelivery};
use posthaste_outbound::{CallError, Delivery, Endpoints};
use posthaste_store::{Claimed, EventData, Headers};

use crate::failure::{Failure, Success};

/// Most of an endpoint's answer that is kept with a failed attempt, in bytes.
const KEPT_OF_FAILURE: usize = 4096;
/// Most of an endpoint's answer that is kept with a successful attempt, in bytes.
const KEPT_OF_SUCCESS: usize = 512;

/// Headers that speak of the connection to us, or that let the bearer in somewhere (RFC 9110, 7.6.1).
/// What the signature of the delivery replaces is dropped with them.
const NOT_PASSED_ON: [&str; 18] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

/// Delivers the event of `job` and returns once its endpoint has answered.
pub(crate) async fn deliver(
    job: &Claimed,
    payload: &WebhookDelivery,
    event: &EventData,
    endpoints: &Endpoints,
    now: Timestamp,
) -> Result<Success, Failure> {
    let delivery = Delivery {
        id: event.id.to_string(),
        timestamp: now.as_secs(),
        headers: headers(job, event),
        body: event.body.clone(),
    };
    match endpoints.deliver(&payload.endpoint, delivery).await {
        Some(Ok(receipt)) => Ok(Success {
            http_status: Some(receipt.status),
            response: text(&receipt.response, KEPT_OF_SUCCESS),
        }),
        Some(Err(error)) => Err(decide(error)),
        None => Err(Failure::new(
            Decision::Retry { after: None },
            "no_endpoint",
            &NoEndpoint(&payload.endpoint),
        )),
    }
}

/// The configuration of this process has no such endpoint. It may come with the next reload.
#[derive(Debug, thiserror::Error)]
#[error("no endpoint is called {0:?} in the configuration of this worker")]
struct NoEndpoint<'a>(&'a str);

/// Decides what a call's error means for the job. The one place that knows.
fn decide(error: CallError) -> Failure {
    let retry = Decision::Retry { after: None };
    match &error {
        CallError::CircuitOpen { retry_in } => {
            Failure::new(Decision::Snooze(*retry_in), "circuit_open", &error)
        }
        CallError::Busy { retry_in } => Failure::new(Decision::Snooze(*retry_in), "busy", &error),
        CallError::Timeout(_) => Failure::new(retry, "timeout", &error),
        CallError::Dns(_) => Failure::new(retry, "dns", &error),
        CallError::Connect(_) => Failure::new(retry, "connect", &error),
        CallError::Tls(_) => Failure::new(retry, "tls", &error),
        CallError::Protocol(_) => Failure::new(retry, "protocol", &error),
        CallError::Status {
            status,
            retry_after,
            response,
            ..
        } => {
            let (decision, class) = decide_status(*status, *retry_after);
            Failure {
                http_status: Some(*status),
                response: text(response, KEPT_OF_FAILURE),
                ..Failure::new(decision, class, &error)
            }
        }
    }
}

/// Decides what an answer other than 2xx means, and names its kind.
///
/// 410 is "gone" by RFC 9110, 15.5.11, and ends it for good. Other 4xx say that the request is at fault,
/// and it will be the same request next time; 408, 425 and 429 say that the moment is. A redirect is not
/// followed, because the answer to another request is no answer to this one; it is tried again, because
/// log-in pages and moves come and go.
fn decide_status(status: u16, after: Option<std::time::Duration>) -> (Decision, &'static str) {
    match status {
        410 => (Decision::DeadLetter, "gone"),
        300..=399 => (Decision::Retry { after: None }, "redirect"),
        408 | 425 | 429 => (Decision::Retry { after }, "status"),
        400..=499 => (Decision::DeadLetter, "status"),
        _ => (Decision::Retry { after }, "status"),
    }
}

/// The headers of a delivery: the provider's own, less what is not passed on, and what we say of it.
fn headers(job: &Claimed, event: &EventData) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(24);
    for (name, value) in event
        .headers
        .iter()
        .filter(|(name, _)| passes(name, &event.headers))
    {
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_maybe_shared(value.clone()),
        ) {
            headers.append(name, value);
        }
    }
    let mut say = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    say("posthaste-source", &event.source);
    if let Some(event_type) = &event.event_type {
        say("posthaste-event-type", event_type);
    }
    say("posthaste-attempt", &job.attempt.to_string());
    if job.replays > 0 {
        say("posthaste-replay", &job.replays.to_string());
    }
    headers
}

/// Tells whether a header of the provider's request goes on to the endpoint.
fn passes(name: &str, all: &Headers) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    if NOT_PASSED_ON.iter().any(|dropped| is(dropped))
        || name
            .get(..10)
            .is_some_and(|start| start.eq_ignore_ascii_case("posthaste-"))
    {
        return false;
    }
    // Whatever a `Connection` names belongs to the connection too, and there may be several.
    !all.iter()
        .filter(|(other, _)| other.eq_ignore_ascii_case("connection"))
        .flat_map(|(_, value)| value.split(|&byte| byte == b','))
        .any(|token| token.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
}

/// Returns the first bytes of an answer as text, or nothing when it is empty.
fn text(response: &Bytes, most: usize) -> Option<String> {
    let kept = &response[..response.len().min(most)];
    (!kept.is_empty()).then(|| String::from_utf8_lossy(kept).into_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_jobs::{Attempt, EventId, JobId, Kind};
    use posthaste_store::Lease;

    use super::*;

    fn status(status: u16, retry_after: Option<Duration>) -> Decision {
        decide(CallError::Status {
            status,
            retry_after,
            response: Bytes::new(),
            location: None,
        })
        .decision
    }

    #[test]
    fn an_open_circuit_and_a_busy_endpoint_cost_no_attempt() {
        let retry_in = Duration::from_secs(30);

        assert_eq!(
            decide(CallError::CircuitOpen { retry_in }).decision,
            Decision::Snooze(retry_in)
        );
        assert_eq!(
            decide(CallError::Busy { retry_in }).decision,
            Decision::Snooze(retry_in)
        );
    }

    #[test]
    fn what_may_pass_is_tried_again_and_what_will_not_is_a_dead_letter() {
        for retried in [
            100, 301, 302, 307, 308, 408, 425, 429, 500, 502, 503, 504, 507, 599, 666,
        ] {
            assert_eq!(
                status(retried, None),
                Decision::Retry { after: None },
                "{retried}"
            );
        }
        for dead in [400, 401, 403, 404, 405, 409, 410, 422, 451] {
            assert_eq!(status(dead, None), Decision::DeadLetter, "{dead}");
        }
    }

    #[test]
    fn a_wait_that_the_endpoint_asks_for_is_honoured() {
        let after = Some(Duration::from_secs(3));

        assert_eq!(status(429, after), Decision::Retry { after });
        assert_eq!(status(503, after), Decision::Retry { after });
    }

    fn claimed(replays: u32, pairs: &[(&str, &[u8])]) -> (Claimed, EventData) {
        let id = JobId::new(Timestamp::from_millis(1), 1);
        let job = Claimed {
            lease: Lease { job: id, token: 1 },
            kind: Ok(Kind::WebhookDelivery),
            payload: String::new(),
            attempt: Attempt::FIRST,
            replays,
            event: None,
        };
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Bytes::copy_from_slice(value)))
            .collect();
        let event = EventData {
            id: EventId::new(Timestamp::from_millis(1), 1),
            source: "github".to_owned(),
            event_type: Some("push".to_owned()),
            received_at: Timestamp::from_millis(1),
            headers: Headers::new(pairs),
            body: Bytes::new(),
        };
        (job, event)
    }

    #[test]
    fn the_providers_own_headers_go_on_and_those_of_the_connection_and_credentials_do_not() {
        let (job, event) = claimed(
            0,
            &[
                ("X-GitHub-Event", b"push"),
                ("content-type", b"application/json"),
                ("x-latin", b"caf\xe9"),
                ("x-twice", b"1"),
                ("x-twice", b"2"),
                ("Authorization", b"Basic c2VjcmV0"),
                ("cookie", b"session=1"),
                ("Host", b"us.example"),
                ("connection", b"keep-alive, X-Hop"),
                ("x-hop", b"1"),
                ("Connection", b"x-second-hop"),
                ("x-second-hop", b"1"),
                ("transfer-encoding", b"chunked"),
                ("webhook-signature", b"v1,theirs"),
                ("Posthaste-Attempt", b"99"),
            ],
        );

        let sent = headers(&job, &event);

        assert_eq!(sent["x-github-event"], "push");
        assert_eq!(sent["x-latin"].as_bytes(), b"caf\xe9");
        assert_eq!(sent.get_all("x-twice").iter().count(), 2);
        assert_eq!(sent["posthaste-attempt"], "1");
        for dropped in [
            "authorization",
            "cookie",
            "host",
            "connection",
            "x-hop",
            "x-second-hop",
            "transfer-encoding",
            "webhook-signature",
        ] {
            assert!(!sent.contains_key(dropped), "{dropped} was passed on");
        }
    }

    #[test]
    fn only_a_replay_says_that_it_is_one() {
        let (first, event) = claimed(0, &[]);
        let (again, _) = claimed(2, &[]);

        assert!(!headers(&first, &event).contains_key("posthaste-replay"));
        assert_eq!(headers(&again, &event)["posthaste-replay"], "2");
    }

    #[test]
    fn an_answer_is_kept_up_to_its_limit_and_not_one_byte_more() {
        let at = Bytes::from(vec![b'a'; KEPT_OF_FAILURE]);
        let past = Bytes::from(vec![b'a'; KEPT_OF_FAILURE + 1]);

        assert_eq!(text(&at, KEPT_OF_FAILURE).unwrap().len(), KEPT_OF_FAILURE);
        assert_eq!(text(&past, KEPT_OF_FAILURE).unwrap().len(), KEPT_OF_FAILURE);
        assert_eq!(text(&Bytes::new(), KEPT_OF_FAILURE), None);
    }
}
