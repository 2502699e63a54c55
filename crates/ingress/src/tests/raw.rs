//! Raw requests that others collected, each with the result that is right for it.

use super::harness::{Answered, TestServer, cases};

struct Case {
    file: String,
    answers: Vec<Answered>,
    events: usize,
}

/// Sends a file as it is, and waits for the server to close.
async fn run(file: &str) -> Case {
    let cases = cases().expect("whoever names a file has read the index");
    let server = TestServer::start().await;
    let bytes = std::fs::read(cases.join(file)).unwrap();
    let answers = server.exchange(&bytes).await;
    Case {
        file: file.to_owned(),
        answers,
        events: server.rooms.events().len(),
    }
}

/// What each expectation of the index means here. An expectation that is not known fails.
fn holds(case: &Case, expect: &str) -> bool {
    let statuses: Vec<u16> = case.answers.iter().map(|answer| answer.status).collect();
    let accepted = |events: usize| statuses == vec![200; events.max(1)] && case.events == events;
    let refused = |status: u16| statuses == [status] && case.events == 0;
    match expect {
        "2xx" | "2xx, 1 job" | "2xx, id trimmed (OWS)" => accepted(1),
        "100 then 2xx (WooCommerce/curl send Expect)" => accepted(1),
        "2xx; \"SECRETTOKEN\" appears in no log" => accepted(1),
        "two 2xx, 2 jobs" => accepted(2),
        "two 2xx, 1 job" => statuses == [200, 200] && case.events == 1,
        "no job (then close)" => case.events == 0 && !statuses.contains(&200),
        "400" => refused(400),
        "404" => refused(404),
        "405" => refused(405),
        "431 or 400" => refused(431),
        // Contradicting lines of a header are refused: a signature as unsigned, an id as ambiguous.
        "4xx, or accepted by a documented rule; never 500" => refused(401),
        "4xx or documented choice" => refused(400),
        // Signatures are over the bytes on the wire, whatever their encoding.
        "2xx if gzip is supported, else 415; never \"bad signature\" as 500" => refused(401),
        "2xx if HMAC is over wire bytes; else 401/415" => accepted(1),
        "2xx or 400, no hang" => accepted(1),
        "204/405; no permissive CORS" => {
            refused(405) && case.answers[0].header("access-control-allow-origin").is_none()
        }
        "400/405" => refused(405),
        "2xx or 404; not a 301/308 that loses the body" | "404 or 2xx" => refused(404),
        "2xx or 404" => accepted(1),
        "closed cleanly" => statuses.is_empty() && case.events == 0,
        // An empty body that is rightly signed is an event like any other.
        "4xx/2xx by rule, never 500" => accepted(1),
        other => panic!("{}: nothing is known of the expectation {other:?}", case.file),
    }
}

#[tokio::test]
async fn every_raw_request_ends_as_its_index_says() {
    let Some(cases) = cases() else { return };
    let index = std::fs::read_to_string(cases.join("http/inbound_raw/index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    let mut wrong = Vec::new();
    let entries = index["cases"].as_array().unwrap();
    for entry in entries {
        let (file, expect) = (entry["file"].as_str().unwrap(), entry["expect"].as_str().unwrap());
        let case = run(file).await;
        if !holds(&case, expect) {
            wrong.push(format!(
                "{file}: {expect}: {} events, {:?}",
                case.events, case.answers
            ));
        }
    }
    println!("{} raw requests", entries.len());

    assert!(!entries.is_empty());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn surrounding_white_space_is_no_part_of_an_id() {
    let Some(cases) = cases() else { return };
    let server = TestServer::start().await;
    let bytes = std::fs::read(cases.join("http/inbound_raw/delivery_spaces.http")).unwrap();

    server.exchange(&bytes).await;

    assert_eq!(server.rooms.events()[0].provider_id, "d-sp");
}

#[tokio::test]
async fn a_client_that_asks_is_told_to_go_on_before_it_sends_the_body() {
    let Some(cases) = cases() else { return };
    let server = TestServer::start().await;
    let bytes = std::fs::read(cases.join("http/inbound_raw/expect_100.http")).unwrap();
    let body_at = bytes.len() - 13;
    let mut stream = server.connect().await;
    tokio::io::AsyncWriteExt::write_all(&mut stream, &bytes[..body_at])
        .await
        .unwrap();

    let mut interim = [0; 25];
    tokio::io::AsyncReadExt::read_exact(&mut stream, &mut interim)
        .await
        .unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");

    tokio::io::AsyncWriteExt::write_all(&mut stream, &bytes[body_at..])
        .await
        .unwrap();
    assert_eq!(super::harness::read_one(&mut stream).await.status, 200);
}
