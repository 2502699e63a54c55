//! No secret in any log, listing or message.

use std::io::Write;
use std::net::TcpStream;

use posthaste_tests::{Command, Config, Endpoint, Port, Receiver, Reply, Request, Setup, TestApp, sign};

/// Part of every secret here; it must be nowhere but in requests.
const TOKEN: &str = "SECRETTOKEN";

#[test]
fn tokens_in_urls_bodies_headers_and_secrets_are_in_no_log_and_no_listing() {
    let receiver = Receiver::start();
    let closed = Port::free();
    let app = TestApp::on(Setup::Own, config(&receiver, &closed)).start();

    let body = format!(r#"{{"token":"{TOKEN}"}}"#);
    let signature = sign::github(&format!("{TOKEN}-of-github"), body.as_bytes());
    let right = Request::github("github", "secrets-1", "push", body.clone())
        .with("x-hub-signature-256", &signature)
        .header("authorization", &format!("Bearer {TOKEN}"))
        .header("cookie", &format!("session={TOKEN}"));
    let with_query = Request {
        path: format!("/webhooks/github?token={TOKEN}"),
        ..right.clone()
    };
    app.send(&with_query).accepted();
    let wrong = [
        right
            .clone()
            .with("x-hub-signature-256", &format!("sha256={TOKEN}")),
        Request {
            path: format!("/webhooks/{TOKEN}"),
            ..right.clone()
        },
        Request {
            path: format!("/{TOKEN}"),
            ..right.clone()
        },
        Request {
            method: "PUT".to_owned(),
            ..with_query
        },
        right.clone().header("x-padding", &TOKEN.repeat(5_000)),
    ];
    for request in &wrong {
        let answer = app.send(request);
        assert_eq!(answer.status / 100, 4, "{answer:?}");
        assert!(
            !String::from_utf8_lossy(&answer.body).contains(TOKEN),
            "{answer:?}"
        );
    }
    let mut garbage = TcpStream::connect(app.address()).expect("it listens");
    garbage
        .write_all(format!("{TOKEN}\r\n\r\n").as_bytes())
        .expect("it reads");
    drop(garbage);
    app.until_finished();

    for args in [
        vec!["jobs", "list"],
        vec!["dead", "list"],
        vec!["dead", "list", "--json"],
        vec!["events", "list"],
        vec!["events", "list", "--json"],
        vec!["check"],
    ] {
        app.run(&args);
    }
    for job in app.jobs() {
        let id = job["id"].as_str().expect("a job has an id").to_owned();
        app.run(&["jobs", "show", &id]).ok();
        app.run(&["jobs", "show", &id, "--json"]).ok();
        app.run(&["dead", "replay", "--id", &id, "--dry-run"]);
    }
    let said = app.everything_said();
    for ending in ["connect", "timeout", "500", "succeeded"] {
        assert!(
            said.contains(ending),
            "no delivery ended with {ending}, so nothing was tested"
        );
    }
    assert!(
        said.contains("\"DEBUG\""),
        "the log is not as talkative as it can be"
    );
    is_silent(&said);
    let basic = receiver.received_on(&format!("/well/{TOKEN}?token={TOKEN}"));
    assert_eq!(basic.len(), 1, "the URL was not called as it is written");
    assert!(
        basic[0].header("authorization").is_some(),
        "the user and password of the URL were not sent"
    );
}

#[test]
fn passwords_of_stores_that_cannot_be_reached_are_not_told() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let closed = Port::free();
    let text = format!(
        "[ledger]\nurl = \"postgres://user:{TOKEN}@{0}/db\"\n[queue]\nurl = \"redis://:{TOKEN}@{0}\"\n",
        closed.address()
    );
    std::fs::write(folder.path().join("posthaste.toml"), text).expect("a configuration can be written");

    for args in [
        &["check"][..],
        &["jobs", "list"],
        &["migrate"],
        &["dead", "replay", "--yes", "--queue", "webhooks"],
    ] {
        let finished = Command::new(folder.path(), args)
            .env("POSTHASTE_LOG", "debug")
            .run();
        assert_eq!(finished.status, Some(1), "{args:?}: {finished:?}");
        is_silent(&(finished.stdout + &finished.stderr));
    }
}

#[test]
fn a_secret_in_a_broken_configuration_is_not_told() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for text in [
        format!("[ledger]\nurl = \"mysql://user:{TOKEN}@host/db\"\n"),
        format!("[queue]\nurl = \"amqp://user:{TOKEN}@host\"\n"),
        format!("[[endpoints]]\nname = \"a\"\nurl = \"ftp://user:{TOKEN}@host/{TOKEN}\"\n"),
        format!(
            "[[endpoints]]\nname = \"a\"\nurl = \"http://127.0.0.1/\"\nsigning_secret = \"whsec_{TOKEN}!\"\n"
        ),
        format!(
            "[[sources]]\nname = \"a\"\nscheme = \"standard-webhooks\"\nsecrets = [\"whsec_{TOKEN}!\"]\n"
        ),
        format!("[[sources]]\nname = \"a\"\nscheme = \"github\"\nsecrets = \"{TOKEN}\"\n"),
        format!("[[sources]]\nname = \"a\"\nscheme = \"github\"\nsecrets = [\"{TOKEN}\" \"{TOKEN}\"]\n"),
        format!("[ledger]\nurl = \"postgres://user:{TOKEN}\n"),
    ] {
        std::fs::write(folder.path().join("posthaste.toml"), &text).expect("a configuration can be written");
        let finished = Command::new(folder.path(), &["check"])
            .env("POSTHASTE_LOG", "debug")
            .run();
        assert_eq!(finished.status, Some(2), "{text}: {finished:?}");
        is_silent(&(finished.stdout + &finished.stderr));
    }
}

fn config(receiver: &Receiver, closed: &Port) -> Config {
    let path = |name: &str| format!("/{name}/{TOKEN}?token={TOKEN}");
    let with_user = |url: String| url.replacen("http://", &format!("http://user:{TOKEN}@"), 1);
    receiver.reply(&path("hangs"), [Reply::Hang]);
    receiver.reply(&path("fails"), [Reply::Status(500)]);
    receiver.reply(
        &path("moved"),
        [Reply::With(302, "location", receiver.url(&path("elsewhere")))],
    );
    receiver.reply(&path("closes"), [Reply::Close]);
    let mut config = Config::new().set("log.filter", "\"debug\"").source(
        "github",
        &format!("scheme = \"github\"\nsecrets = [\"{TOKEN}-of-github\"]"),
    );
    let refused = (
        "refused",
        format!("http://{}{}", closed.address(), path("refused")),
    );
    let unknown = (
        "unknown",
        format!("http://no-such-host.invalid{}", path("unknown")),
    );
    let others = ["hangs", "fails", "moved", "closes", "well"].map(|name| (name, receiver.url(&path(name))));
    for (name, url) in [refused, unknown].into_iter().chain(others) {
        let endpoint = Endpoint::new(name, &with_user(url))
            .timeout("1s")
            .retry(2, "50ms", "50ms");
        config = config.endpoint(endpoint).route("github", name);
    }
    config
}

#[track_caller]
fn is_silent(said: &str) {
    let telling: Vec<&str> = said.lines().filter(|line| line.contains(TOKEN)).collect();
    assert!(telling.is_empty(), "a secret was told:\n{}", telling.join("\n"));
}
