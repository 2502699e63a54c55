//! What is no webhook for us.

use posthaste_tests::{Config, Receiver, Request, Response, Setup, TestApp};

#[test]
fn an_unknown_source_or_path_is_404() {
    let receiver = Receiver::start();
    let app = TestApp::on(Setup::Own, Config::github_to(&receiver.url("/hooks"))).start();

    for path in [
        "/webhooks/unknown",
        "/webhooks/GitHub",
        "/webhooks/",
        "/webhooks",
        "/webhooks/github/x",
        "/",
        "/v2",
    ] {
        let request = Request {
            path: path.to_owned(),
            ..Request::github("github", "lost-1", "push", "{}")
        };
        let answer = app.send(&request);
        assert_eq!(answer.status, 404, "{path}");
        is_a_problem(&answer);
    }
    assert_eq!(receiver.count(), 0);
}

#[test]
fn a_method_other_than_post_is_405_and_says_which_is_right() {
    let receiver = Receiver::start();
    let app = TestApp::on(Setup::Own, Config::github_to(&receiver.url("/hooks"))).start();

    for method in ["PUT", "PATCH", "DELETE", "GET"] {
        let request = Request {
            method: method.to_owned(),
            ..Request::github("github", "put-1", "push", "{}")
        };
        let answer = app.send(&request);
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), Some("POST"), "{method}");
        is_a_problem(&answer);
    }
    assert_eq!(receiver.count(), 0);
}

#[test]
fn every_answer_has_a_request_id_of_its_own() {
    let receiver = Receiver::start();
    let app = TestApp::on(Setup::Own, Config::github_to(&receiver.url("/hooks"))).start();

    let answers = [
        app.send(&Request::github("github", "request-id-1", "push", "{}")),
        app.send(&Request::github("github", "request-id-2", "push", "{}").without("x-hub-signature-256")),
        app.send(&Request::webhook("unknown", "{}")),
        app.send(&Request::new("GET", "/healthz", "")),
    ];

    let mut ids: Vec<&str> = answers
        .iter()
        .map(|answer| answer.header("x-request-id").expect("every answer has one"))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), answers.len());
}

#[test]
fn what_is_no_http_gets_no_200_and_does_no_harm() {
    use std::io::Write;

    let receiver = Receiver::start();
    let app = TestApp::on(Setup::Own, Config::github_to(&receiver.url("/hooks"))).start();

    for garbage in [
        "\u{16}\u{3}\u{1}\u{2}\r\n\r\n",
        "POST /webhooks/github\r\n\r\n",
        "POST /webhooks/github HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "POST /webhooks/github HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        "POST /webhooks/github HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let mut stream = std::net::TcpStream::connect(app.address()).expect("it listens");
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(60)))
            .expect("a time-out can be set");
        stream.write_all(garbage.as_bytes()).expect("it reads");
        if let Ok(answer) = Response::read(&mut stream) {
            assert_eq!(answer.status / 100, 4, "{garbage:?}: {answer:?}");
        }
    }
    app.send(&Request::github("github", "after-garbage", "push", "{}"))
        .accepted();
    app.until_finished();

    assert_eq!(receiver.count(), 1);
}

#[test]
fn health_and_readiness_are_told_when_all_is_well() {
    let receiver = Receiver::start();
    let app = TestApp::on(Setup::Own, Config::github_to(&receiver.url("/hooks"))).start();

    assert_eq!(app.send(&Request::new("GET", "/healthz", "")).status, 200);
    assert_eq!(app.send(&Request::new("GET", "/readyz", "")).status, 200);
}

#[track_caller]
fn is_a_problem(answer: &Response) {
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json"),
        "{answer:?}"
    );
    assert!(!answer.text("code").is_empty(), "{answer:?}");
    assert_eq!(answer.json()["status"], answer.status, "{answer:?}");
}
