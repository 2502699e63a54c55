use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use posthaste_jobs::Kind;
use posthaste_queue::{AppendOnly, Inspection, Probe, Survey};

use super::harness::{Request, TestServer, read_one, source, until};
use crate::{Catalog, Config, Duty, Scheme};

const PAID: &[u8] = br#"{"id":"evt_1","type":"payment_intent.succeeded"}"#;

#[tokio::test]
async fn a_signed_event_is_accepted_with_one_job_for_each_endpoint_and_pushed() {
    let server = TestServer::start().await;

    let answer = server.send(&Request::stripe(PAID)).await;

    assert_eq!(
        (answer.status, answer.json()["status"].as_str()),
        (200, Some("accepted"))
    );
    let [event] = &server.rooms.events()[..] else {
        panic!("not one event");
    };
    assert_eq!(answer.json()["event_id"], event.id.to_string());
    assert_eq!(
        (event.source.as_str(), event.provider_id.as_str()),
        ("stripe", "evt_1")
    );
    assert_eq!(event.event_type.as_deref(), Some("payment_intent.succeeded"));
    assert_eq!(event.body, PAID);
    let jobs: Vec<_> = event
        .jobs
        .iter()
        .map(|job| (job.kind, job.payload.as_str()))
        .collect();
    assert_eq!(
        jobs,
        [
            (Kind::WebhookDelivery, r#"{"endpoint":"orders"}"#),
            (Kind::WebhookDelivery, r#"{"endpoint":"books"}"#)
        ]
    );
    let ids: Vec<_> = event.jobs.iter().map(|job| job.id).collect();
    until("both are pushed", || *server.rooms.pushed.lock().unwrap() == ids).await;
}

#[tokio::test]
async fn an_event_that_no_route_takes_is_accepted_without_a_job() {
    let server = TestServer::start().await;

    let answer = server
        .send(&Request::stripe(br#"{"id":"evt_2","type":"plan.created"}"#))
        .await;

    assert_eq!(answer.status, 200);
    assert_eq!(server.rooms.events()[0].jobs.len(), 0);
}

#[tokio::test]
async fn a_duplicate_is_told_the_first_id_and_pushes_nothing() {
    let server = TestServer::start().await;

    let first = server.send(&Request::github("d-1", b"{}")).await.json();
    let second = server.send(&Request::github("d-1", b"{}")).await.json();

    assert_eq!(second["status"], "duplicate");
    assert_eq!(first["event_id"], second["event_id"]);
    assert_eq!(server.rooms.events().len(), 1);
}

#[tokio::test]
async fn a_request_that_is_refused_does_not_use_up_its_id() {
    let server = TestServer::start().await;
    let mut forged = Request::github("d-1", b"{}");
    forged.body = b"[]".to_vec();

    assert_eq!(server.send(&forged).await.status, 401);
    assert_eq!(server.rooms.events().len(), 0);

    assert_eq!(
        server.send(&Request::github("d-1", b"{}")).await.json()["status"],
        "accepted"
    );
}

#[tokio::test]
async fn whatever_is_wrong_with_a_signature_the_answer_is_the_same() {
    let server = TestServer::start().await;
    let mut answers = Vec::new();
    for (name, value) in [
        ("x-nothing", ""),
        ("stripe-signature", "nonsense"),
        ("stripe-signature", "t=1796095930,v1=00"),
        ("stripe-signature", "t=1,v1=00"),
    ] {
        let request = Request::new("POST /webhooks/stripe", PAID)
            .header(name, value)
            .header("x-request-id", "r");
        let answer = server.send(&request).await;
        answers.push((answer.status, answer.code(), answer.json()));
    }

    assert_eq!((answers[0].0, answers[0].1.as_str()), (401, "invalid_signature"));
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    assert_eq!(server.rooms.events().len(), 0);
}

#[tokio::test]
async fn while_the_ledger_is_away_nothing_is_promised_and_the_retry_is_accepted() {
    let server = TestServer::start().await;
    server.rooms.ledger_down.store(true, Ordering::SeqCst);

    let refused = server.send(&Request::github("d-1", b"{}")).await;
    server.rooms.ledger_down.store(false, Ordering::SeqCst);
    let accepted = server.send(&Request::github("d-1", b"{}")).await;

    assert_eq!(
        (refused.status, refused.code().as_str()),
        (503, "ledger_unavailable")
    );
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(accepted.json()["status"], "accepted");
}

#[tokio::test]
async fn a_queue_that_is_away_fails_no_event() {
    let server = TestServer::start().await;
    server.rooms.queue_down.store(true, Ordering::SeqCst);

    assert_eq!(server.send(&Request::github("d-1", b"{}")).await.status, 200);
    server.rooms.queue_down.store(false, Ordering::SeqCst);
    assert_eq!(server.send(&Request::github("d-2", b"{}")).await.status, 200);

    let second = server.rooms.events()[1].jobs[0].id;
    until("later jobs are pushed", || {
        server.rooms.pushed.lock().unwrap().contains(&second)
    })
    .await;
}

#[tokio::test]
async fn headers_are_kept_as_bytes_with_their_repetitions() {
    let server = TestServer::start().await;
    let mut request = Request::github("d-1", b"{}")
        .header("X-Twice", "one")
        .header("X-Twice", "two")
        .header("X-Empty", "")
        .bytes();
    let at = request.windows(3).position(|three| three == b"two").unwrap();
    request[at] = 0xe9;

    assert_eq!(server.exchange(&request).await[0].status, 200);

    let headers = server.rooms.events()[0].headers.clone();
    let of = |wanted: &str| -> Vec<Vec<u8>> {
        let named = headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        named.map(|(_, value)| value.to_vec()).collect()
    };
    assert_eq!(of("x-twice"), [b"one".to_vec(), b"\xe9wo".to_vec()]);
    assert_eq!(of("x-empty"), [b"".to_vec()]);
    assert_eq!(of("content-length"), [b"2".to_vec()]);
}

#[tokio::test]
async fn bodies_that_are_hard_to_parse_are_kept_byte_for_byte() {
    let server = TestServer::start().await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let bodies: [&[u8]; 7] = [
        b"",
        b"\xff\xfe{",
        b"\xef\xbb\xbf{\"id\":\"bom\",\"type\":\"payment_intent.x\"}",
        br#"{"id":"\ud800"}"#,
        br#"{"id":"nul\u0000","n":9007199254740993}"#,
        b"{\"id\":\"nul\0\"}",
        deep.as_bytes(),
    ];
    for body in bodies {
        assert_eq!(
            server.send(&Request::stripe(body)).await.json()["status"],
            "accepted"
        );
    }

    let kept: Vec<_> = server
        .rooms
        .events()
        .into_iter()
        .map(|event| event.body)
        .collect();
    assert_eq!(kept, bodies);
    assert_eq!(server.rooms.events()[2].provider_id, "bom");
}

#[tokio::test]
async fn a_large_body_is_verified_like_a_small_one() {
    let server = TestServer::start().await;
    let body = vec![b'a'; 3_000_000];
    let mut forged = Request::github("d-2", &body);
    forged.body[2_999_999] = b'b';

    assert_eq!(server.send(&Request::github("d-1", &body)).await.status, 200);
    assert_eq!(server.send(&forged).await.status, 401);
    assert_eq!(server.rooms.events()[0].body, body);
    assert_eq!(server.rooms.events().len(), 1);
}

#[tokio::test]
async fn an_unsigned_source_names_events_by_their_body() {
    let server = TestServer::start().await;
    let send = async |body: &[u8]| {
        server
            .send(&Request::new("POST /webhooks/open", body))
            .await
            .json()["status"]
            .clone()
    };

    assert_eq!(send(b"a").await, "accepted");
    assert_eq!(send(b"a").await, "duplicate");
    assert_eq!(send(b"b").await, "accepted");
}

#[tokio::test]
async fn another_method_is_told_which_one_is_taken() {
    let server = TestServer::start().await;
    for method in ["GET", "PUT", "OPTIONS", "post"] {
        let answer = server
            .send(&Request::new(&format!("{method} /webhooks/github"), b""))
            .await;

        assert_eq!(
            (answer.status, answer.code().as_str()),
            (405, "method_not_allowed"),
            "{method}"
        );
        assert_eq!(answer.header("allow"), Some("POST"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let answer = server.send(&Request::new("POST /healthz", b"")).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")));
}

#[tokio::test]
async fn every_answer_carries_the_id_of_its_request() {
    let server = TestServer::start().await;
    for line in [
        "POST /webhooks/nosuch",
        "POST /nowhere",
        "GET /webhooks/github",
        "GET /healthz",
    ] {
        let own = server
            .send(&Request::new(line, b"").header("x-request-id", "trace-1"))
            .await;
        let made = server.send(&Request::new(line, b"")).await;

        assert_eq!(own.header("x-request-id"), Some("trace-1"), "{line}");
        assert_eq!(made.header("x-request-id").unwrap().len(), 16, "{line}");
    }
    let answer = server.send(&Request::new("POST /webhooks/nosuch", b"")).await;
    assert_eq!((answer.status, answer.code().as_str()), (404, "unknown_source"));
    let answer = server.send(&Request::new("POST /webhooks/%ff", b"")).await;
    assert_eq!((answer.status, answer.code().as_str()), (404, "unknown_source"));
}

#[tokio::test]
async fn the_latest_catalog_serves_the_next_request_of_an_open_connection() {
    let server = TestServer::start().await;
    let mut stream = server.connect().await;
    let request = Request::new("POST /webhooks/later", b"").bytes();

    tokio::io::AsyncWriteExt::write_all(&mut stream, &request)
        .await
        .unwrap();
    assert_eq!(read_one(&mut stream).await.status, 404);
    let catalog = Catalog::new(vec![source("later", Scheme::None, &[])], vec![], &[]).unwrap();
    server.catalog.send(Arc::new(catalog)).unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, &request)
        .await
        .unwrap();

    assert_eq!(read_one(&mut stream).await.status, 200);
}

#[tokio::test]
async fn readiness_names_what_is_missing() {
    for (ledger_down, queue_down) in [(false, false), (true, false), (false, true), (true, true)] {
        let server = TestServer::start().await;
        server.rooms.ledger_down.store(ledger_down, Ordering::SeqCst);
        server.rooms.queue_down.store(queue_down, Ordering::SeqCst);

        let ready = server.send(&Request::new("GET /readyz", b"")).await;
        let alive = server.send(&Request::new("GET /healthz", b"")).await;

        assert_eq!(ready.status, if ledger_down || queue_down { 503 } else { 200 });
        assert_eq!(ready.json()["ledger"] != "ok", ledger_down, "{ready:?}");
        assert_eq!(ready.json()["queue"] != "ok", queue_down, "{ready:?}");
        assert_eq!(alive.status, 200);
    }
}

fn stalled() -> Probe {
    let long = Some(Duration::from_secs(45));
    Probe {
        survey: Survey {
            oldest: long,
            fetched: long,
            ..Survey::default()
        },
        server: None,
    }
}

#[tokio::test]
async fn jobs_that_nobody_takes_are_a_warning_to_who_accepts_and_a_failure_of_who_works() {
    let work = Duty::Work(Arc::new(|| None));
    for (duty, status) in [(Duty::Accept, 200), (work, 503)] {
        let server = TestServer::charged(Config::default(), duty).await;
        *server.rooms.probe.lock().unwrap() = stalled();

        let ready = server.send(&Request::new("GET /readyz", b"")).await;

        assert_eq!(ready.status, status, "{ready:?}");
        let answer = ready.json();
        let said = match status {
            200 => &answer["warnings"][0],
            _ => &answer["queue"],
        };
        assert_eq!(said, "nobody takes jobs: the oldest has been due for 45s");
    }
}

#[tokio::test]
async fn workers_that_cannot_claim_or_settle_for_10_s_are_not_ready() {
    for (since, status) in [(None, 200), (Some(9_999), 200), (Some(10_000), 503)] {
        let since = since.map(Duration::from_millis);
        let server = TestServer::charged(Config::default(), Duty::Work(Arc::new(move || since))).await;

        let ready = server.send(&Request::new("GET /readyz", b"")).await;

        assert_eq!(ready.status, status, "{since:?}: {ready:?}");
    }
}

#[tokio::test]
async fn a_redis_that_may_evict_jobs_is_a_warning() {
    let server = TestServer::start().await;
    server.rooms.probe.lock().unwrap().server = Some(Inspection {
        server: "Redis 7.0.15".to_owned(),
        policy: "allkeys-lru".to_owned(),
        append_only: AppendOnly::No,
    });

    let ready = server.send(&Request::new("GET /readyz", b"")).await;

    assert_eq!(ready.status, 200);
    assert!(
        ready.json()["warnings"][0].to_string().contains("allkeys-lru"),
        "{ready:?}"
    );
}

#[tokio::test]
async fn asking_often_whether_it_is_ready_asks_the_ledger_once() {
    let server = TestServer::start().await;
    for _ in 0..10 {
        server.send(&Request::new("GET /readyz", b"")).await;
    }

    // Ten requests on loopback may take longer than an answer is fresh on a machine that is very busy.
    assert!(server.rooms.checks.load(Ordering::SeqCst) < 10);
}
