//! Bytes in are bytes out.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use posthaste_tests::{
    Config, Endpoint, GITHUB_SECRET, Received, Receiver, Request, SIGNING_SECRET, Setup, TestApp, cases, sign,
};
use serde_json::json;

/// Bodies in GitHub's documented shape, so that there is something to send where no real ones are at hand.
const OWN_PAYLOADS: [(&str, &str); 3] = [
    (
        "ping",
        r#"{"zen":"Approachable is better than simple.","hook_id":30}"#,
    ),
    (
        "push",
        "{ \"ref\": \"refs/heads/grün\",\r\n  \"commits\": [ ], \"created\": 1e2 }\n",
    ),
    (
        "issues",
        r#"{"action":"opened","issue":{"id":9007199254740993,"title":"\u001b \/ ♥"}}"#,
    ),
];

in_each_setup! {
    fn every_github_payload_arrives_byte_for_byte_and_once_by_send_and_by_curl(setup) {
        let receiver = Receiver::start();
        let app = TestApp::on(setup, Config::github_to(&receiver.url("/hooks"))).start();
        let files = files_to_send(app.folder());

        for (number, (event_type, content_type, file)) in files.iter().enumerate() {
            app.run(&["send", "github", "--type", event_type, "--file", &file.to_string_lossy()]).ok();
            let addresses = app.addresses();
            let url = format!("http://{}/webhooks/github", addresses[number % addresses.len()]);
            send_with_curl(&url, event_type, content_type, file);
        }
        app.until_finished();

        let received = receiver.received();
        let mut expected = BTreeMap::new();
        for (_, _, file) in &files {
            *expected.entry(digest_of_file(file)).or_insert(0) += 2;
        }
        assert_eq!(count_by_digest(&received), expected);
        let ids: BTreeSet<String> = received.iter().map(Received::id).collect();
        assert_eq!(ids.len(), received.len(), "two events have one webhook-id");
        for request in &received {
            assert!(is_signed(request), "{request:?}");
            assert_eq!(request.header("posthaste-source").as_deref(), Some("github"));
            assert_eq!(request.header("posthaste-event-type"), request.header("x-github-event"));
            assert_eq!(request.header("posthaste-attempt").as_deref(), Some("1"));
            assert_eq!(request.header("posthaste-replay"), None);
        }
        verify_with_the_published_library(&received);
    }
}

in_each_setup! {
    fn bodies_that_are_no_json_or_odd_json_are_accepted_and_delivered_byte_for_byte(setup) {
        let receiver = Receiver::start();
        let config = Config::new()
            .github("github")
            .stripe("stripe")
            .endpoint(Endpoint::new("orders", &receiver.url("/hooks")))
            .route("github", "orders")
            .route("stripe", "orders");
        let app = TestApp::on(setup, config).start();
        let bodies = odd_bodies();

        let mut sent = BTreeMap::new();
        for (number, (name, body)) in bodies.iter().enumerate() {
            let delivery = format!("odd-{number}");
            let by_github = app.send(&Request::github("github", &delivery, "push", body.clone()));
            let by_stripe = app.send(&Request::stripe("stripe", 0, body.clone()));
            for response in [by_github, by_stripe] {
                assert_eq!(response.status, 200, "{name}: {response:?}");
                sent.insert(response.accepted(), sign::digest(body));
            }
        }
        app.until_finished();

        let received: BTreeMap<String, String> =
            receiver.received().iter().map(|request| (request.id(), sign::digest(&request.body))).collect();
        assert_eq!(received, sent);
        assert_eq!(receiver.count(), sent.len(), "something was delivered twice");
        for event in sent.keys() {
            let shown = app.json(&["events", "show", event]);
            assert!(shown.is_object(), "{shown}");
        }
    }
}

#[test]
fn headers_of_the_provider_go_on_and_credentials_do_not() {
    let receiver = Receiver::start();
    let app = TestApp::on(Setup::Own, Config::github_to(&receiver.url("/hooks"))).start();

    let request = Request::github("github", "headers-1", "push", "{}")
        .header("x-hub-custom", "kept")
        .header("authorization", "Basic dXNlcjpwYXNzd29yZA==")
        .header("cookie", "session=1");
    app.send(&request).accepted();
    app.until_finished();

    let received = &receiver.received()[0];
    assert_eq!(received.header("x-github-delivery").as_deref(), Some("headers-1"));
    assert_eq!(received.header("x-hub-custom").as_deref(), Some("kept"));
    assert_eq!(
        received.header("content-type").as_deref(),
        Some("application/json")
    );
    for name in ["authorization", "cookie"] {
        assert_eq!(received.header(name), None, "{name} was passed on");
    }
}

#[test]
fn up_works_on_postgresql_and_redis_too() {
    let receiver = Receiver::start();
    let app = TestApp::on(Setup::UpOnServers, Config::github_to(&receiver.url("/hooks"))).start();

    let event = app
        .send(&Request::github("github", "up-1", "push", "{}"))
        .accepted();
    app.until_finished();

    assert_eq!(
        receiver.received().iter().map(Received::id).collect::<Vec<_>>(),
        [event]
    );
}

#[test]
fn an_event_goes_along_each_route_that_names_its_type_and_along_no_other() {
    let receiver = Receiver::start();
    let config = Config::new()
        .github("github")
        .endpoint(Endpoint::new("all", &receiver.url("/all")))
        .endpoint(Endpoint::new("pushes", &receiver.url("/pushes")))
        .endpoint(Endpoint::new("issues", &receiver.url("/issues")))
        .route("github", "all")
        .route_of("github", "push", "pushes")
        .route_of("github", "issue*", "issues");
    let app = TestApp::on(Setup::Own, config).start();

    app.send(&Request::github("github", "routes-1", "push", "{}"))
        .accepted();
    app.send(&Request::github("github", "routes-2", "issue_comment", "{}"))
        .accepted();
    app.until_finished();

    assert_eq!(receiver.received_on("/all").len(), 2);
    assert_eq!(receiver.received_on("/pushes").len(), 1);
    assert_eq!(receiver.received_on("/issues").len(), 1);
    assert_eq!(receiver.count(), 4);
}

/// Event type, content type and file of every body to send.
fn files_to_send(folder: &Path) -> Vec<(String, String, PathBuf)> {
    let own = OWN_PAYLOADS.iter().map(|(event_type, body)| {
        let file = folder.join(format!("{event_type}.json"));
        std::fs::write(&file, body).expect("a payload can be written");
        ((*event_type).to_owned(), "application/json".to_owned(), file)
    });
    let real = cases::payloads("github").into_iter().map(|case| {
        let event_type = case.event_type.expect("a payload of GitHub has a type");
        (event_type, case.content_type, case.path)
    });
    own.chain(real).collect()
}

/// What an operator without our software would type.
fn send_with_curl(url: &str, event_type: &str, content_type: &str, file: &Path) {
    let script = r#"
        set -eu
        signature=$(openssl dgst -sha256 -hmac "$SECRET" < "$FILE" | sed 's/^.* //')
        curl --silent --show-error --fail "$URL" --data-binary "@$FILE" \
            -H "Content-Type: $CONTENT_TYPE" -H "X-GitHub-Event: $EVENT" \
            -H "X-GitHub-Delivery: curl-$signature" -H "X-Hub-Signature-256: sha256=$signature"
    "#;
    let output = Command::new("sh")
        .args(["-c", script])
        .env("SECRET", GITHUB_SECRET)
        .env("FILE", file)
        .env("URL", url)
        .env("CONTENT_TYPE", content_type)
        .env("EVENT", event_type)
        .output()
        .expect("sh can be run");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{file:?}: {stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(stdout.contains("accepted"), "{file:?}: {stdout}");
}

fn odd_bodies() -> Vec<(String, Vec<u8>)> {
    let deep = [vec![b'['; 10_000], vec![b']'; 10_000]].concat();
    let composed: [(&str, Vec<u8>); 8] = [
        ("no UTF-8", b"{\"id\":\"caf\xe9\"}".to_vec()),
        ("NUL bytes", b"\0{\"id\":\0}\0".to_vec()),
        ("an escaped NUL", br#"{"id":"odd\u0000nul"}"#.to_vec()),
        ("a lone surrogate", br#"{"id":"\ud800"}"#.to_vec()),
        ("10,000 deep", deep),
        (
            "beyond 2^53",
            br#"{"id":12345678901234567890123,"n":9007199254740993}"#.to_vec(),
        ),
        ("carriage returns", b"{\r\n\"id\": \"crlf\"\r\n}\r\n".to_vec()),
        ("a byte order mark", b"\xef\xbb\xbf{\"id\":\"bom\"}".to_vec()),
    ];
    let composed = composed.into_iter().map(|(name, body)| (name.to_owned(), body));
    composed
        .chain(
            cases::payloads("edge")
                .into_iter()
                .map(|case| (case.name, case.body)),
        )
        .collect()
}

fn digest_of_file(file: &Path) -> String {
    sign::digest(&std::fs::read(file).expect("a payload can be read"))
}

fn count_by_digest(received: &[Received]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in received {
        *counts.entry(sign::digest(&request.body)).or_insert(0) += 1;
    }
    counts
}

fn is_signed(request: &Received) -> bool {
    let timestamp: i64 = request
        .header("webhook-timestamp")
        .and_then(|text| text.parse().ok())
        .expect("a delivery has a time");
    let expected = sign::standard(SIGNING_SECRET, &request.id(), timestamp, &request.body);
    request.header("webhook-signature") == Some(expected)
}

/// Hands the deliveries to the library that receivers use; says so when it cannot be installed.
#[expect(clippy::print_stderr, reason = "what was skipped is said where failures are")]
fn verify_with_the_published_library(received: &[Received]) {
    let deliveries: Vec<_> = received
        .iter()
        .map(|request| {
            json!({
                "id": request.id(),
                "timestamp": request.header("webhook-timestamp"),
                "signature": request.header("webhook-signature"),
                "body": String::from_utf8(request.body.clone()).expect("these bodies are UTF-8"),
            })
        })
        .collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/verify_standard_webhooks.py");
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("standardwebhooks");
    let mut python = Command::new("python3")
        .arg(script)
        .arg(venv)
        .arg(SIGNING_SECRET)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is on the PATH");
    let mut stdin = python.stdin.take().expect("its stdin is ours");
    stdin
        .write_all(&serde_json::to_vec(&deliveries).expect("they are JSON"))
        .expect("the script reads its input");
    drop(stdin);
    let output = python.wait_with_output().expect("the script ends");
    let stdout = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) => assert_eq!(stdout.trim(), format!("{} verified", received.len())),
        Some(75) => eprintln!("SKIPPED: the library standardwebhooks cannot be installed: {stdout}"),
        _ => panic!("{stdout}"),
    }
}
