//! What an endpoint can do, and how the job ends.

use std::time::{Duration, Instant};

use posthaste_tests::{Config, Endpoint, Port, Received, Receiver, Reply, Request, Setup, TestApp};
use serde_json::Value;

in_each_setup! {
    fn five_times_500_then_200_is_six_attempts_of_one_event(setup) {
        let receiver = Receiver::start();
        let replies = [vec![Reply::Status(500); 5], vec![Reply::Status(200)]].concat();
        let (app, job) = run(setup, &receiver, replies, |endpoint| endpoint);

        let shown = app.until_state(&job, "succeeded");

        let received = receiver.received();
        let numbers: Vec<_> = received.iter().filter_map(|request| request.header("posthaste-attempt")).collect();
        assert_eq!(numbers, ["1", "2", "3", "4", "5", "6"]);
        let ids: Vec<String> = received.iter().map(Received::id).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "the webhook-id changed: {ids:?}");
        assert!(received.iter().all(|request| request.body == received[0].body));
        assert_eq!(statuses(&shown), [500, 500, 500, 500, 500, 200]);
        assert_eq!(outcomes(&shown), ["failed", "failed", "failed", "failed", "failed", "succeeded"]);
    }
}

#[test]
fn waits_between_attempts_grow() {
    let receiver = Receiver::start();
    let replies = [vec![Reply::Status(503); 3], vec![Reply::Status(200)]].concat();
    let (app, job) = run(Setup::Own, &receiver, replies, |endpoint| {
        endpoint.retry(4, "200ms", "10s")
    });

    app.until_state(&job, "succeeded");

    let waits = waits(&receiver.received());
    for (wait, least) in waits.iter().zip([200, 400, 800]) {
        assert!(*wait >= Duration::from_millis(least - 5), "{waits:?}");
    }
}

#[test]
fn when_all_attempts_are_spent_it_is_a_dead_letter_and_stays_one() {
    let receiver = Receiver::start();
    let (app, job) = run(Setup::Own, &receiver, [Reply::Status(500)], |endpoint| {
        endpoint.retry(3, "50ms", "50ms")
    });

    let shown = app.until_state(&job, "dead");
    let next = app
        .send(&Request::github("github", "after", "push", "{}"))
        .accepted();
    app.until_state(&app.job_of(&next), "dead");

    assert_eq!(shown["dead_reason"], "exhausted");
    assert_eq!(statuses(&shown), [500, 500, 500]);
    assert_eq!(shown["attempts_spent"], 3);
    let of_the_first = receiver
        .received()
        .iter()
        .filter(|request| request.id() != next)
        .count();
    assert_eq!(of_the_first, 3, "a dead letter was tried again");
}

#[test]
fn an_endpoint_that_hangs_is_a_timeout_and_is_retried() {
    let receiver = Receiver::start();
    let replies = [Reply::Hang, Reply::Status(200)];
    let (app, job) = run(Setup::Own, &receiver, replies, |endpoint| {
        endpoint.timeout("300ms")
    });

    let shown = app.until_state(&job, "succeeded");

    assert_eq!(error_classes(&shown), ["timeout", ""]);
    assert!(duration_ms(&shown, 0) >= 290, "{shown:#}");
    assert!(duration_ms(&shown, 0) < 5_000, "{shown:#}");
}

#[test]
fn an_endpoint_that_refuses_connections_is_retried_until_it_is_there() {
    let port = Port::free();
    let config = Config::github_to(&format!("http://{}/hooks", port.address()));
    let app = TestApp::on(Setup::Own, config).start();
    let event = app
        .send(&Request::github("github", "refused-1", "push", "{}"))
        .accepted();
    let job = app.job_of(&event);
    app.until_state(&job, "retrying");

    let receiver = Receiver::start_on(&port);
    let shown = app.until_state(&job, "succeeded");

    assert_eq!(receiver.count(), 1);
    let classes = error_classes(&shown);
    let (last, failed) = classes.split_last().expect("there are attempts");
    assert_eq!(last, "");
    assert!(
        !failed.is_empty() && failed.iter().all(|class| class == "connect"),
        "{classes:?}"
    );
}

#[test]
fn a_connection_that_is_closed_without_an_answer_is_retried() {
    let receiver = Receiver::start();
    let (app, job) = run(
        Setup::Own,
        &receiver,
        [Reply::Close, Reply::Status(200)],
        |endpoint| endpoint,
    );

    let shown = app.until_state(&job, "succeeded");

    assert_eq!(error_classes(&shown), ["protocol", ""]);
    assert_eq!(receiver.count(), 2);
}

#[test]
fn a_429_with_retry_after_is_not_asked_again_sooner() {
    let receiver = Receiver::start();
    let replies = [
        Reply::With(429, "retry-after", "3".to_owned()),
        Reply::Status(200),
    ];
    let (app, job) = run(Setup::Own, &receiver, replies, |endpoint| endpoint);

    let shown = app.until_state(&job, "succeeded");

    let wait = waits(&receiver.received())[0];
    assert!(wait >= Duration::from_secs(3), "asked again after {wait:?}");
    assert!(wait < Duration::from_secs(10), "asked again only after {wait:?}");
    assert_eq!(statuses(&shown), [429, 200]);
}

#[test]
fn a_retry_after_that_is_no_time_is_ignored() {
    let receiver = Receiver::start();
    let nonsense = ["soon", "-5", "1e99", ""].map(|value| Reply::With(503, "retry-after", value.to_owned()));
    let replies = [nonsense.to_vec(), vec![Reply::Status(200)]].concat();
    let began = Instant::now();
    let (app, job) = run(Setup::Own, &receiver, replies, |endpoint| endpoint);

    app.until_state(&job, "succeeded");

    assert!(
        began.elapsed() < Duration::from_secs(30),
        "took {:?}",
        began.elapsed()
    );
}

#[test]
fn answers_that_will_not_change_are_dead_letters_at_once() {
    for status in [410, 400, 401, 404, 422] {
        let receiver = Receiver::start();
        let (app, job) = run(Setup::Own, &receiver, [Reply::Status(status)], |endpoint| {
            endpoint
        });

        let shown = app.until_state(&job, "dead");

        assert_eq!(shown["dead_reason"], "permanent", "{status}");
        assert_eq!(statuses(&shown), [u64::from(status)]);
        assert_eq!(receiver.count(), 1, "{status} was tried again");
    }
}

#[test]
fn a_redirect_is_no_success_and_is_not_followed() {
    for status in [301, 302, 307, 308] {
        let receiver = Receiver::start();
        let elsewhere = receiver.url("/elsewhere");
        let (app, job) = run(
            Setup::Own,
            &receiver,
            [Reply::With(status, "location", elsewhere)],
            |endpoint| endpoint.retry(2, "50ms", "50ms"),
        );

        let shown = app.until_state(&job, "dead");

        assert_eq!(statuses(&shown), [u64::from(status); 2]);
        assert_eq!(
            receiver.received_on("/elsewhere").len(),
            0,
            "{status} was followed"
        );
    }
}

#[test]
fn every_2xx_is_a_success_and_204_needs_no_body() {
    for status in [200, 201, 202, 204, 299] {
        let receiver = Receiver::start();
        let (app, job) = run(Setup::Own, &receiver, [Reply::Status(status)], |endpoint| {
            endpoint
        });

        let shown = app.until_state(&job, "succeeded");

        assert_eq!(statuses(&shown), [u64::from(status)]);
        assert_eq!(receiver.count(), 1);
    }
}

#[test]
fn an_answer_of_50_mb_or_without_end_is_neither_kept_nor_waited_for() {
    for (status, reply) in [
        (200, Reply::Big(200, 50_000_000)),
        (200, Reply::Endless(200)),
        (400, Reply::Big(400, 50_000_000)),
        (400, Reply::Endless(400)),
    ] {
        let receiver = Receiver::start();
        let (mut app, job) = run(Setup::Own, &receiver, [reply.clone()], |endpoint| {
            endpoint.timeout("5s")
        });

        let ending = if status == 200 { "succeeded" } else { "dead" };
        let shown = app.until_state(&job, ending);

        assert_eq!(statuses(&shown), [status], "{reply:?}");
        assert!(duration_ms(&shown, 0) < 6_000, "{reply:?}: {shown:#}");
        let kept = attempts(&shown)[0]["response"].as_str().unwrap_or_default().len();
        assert!(
            kept <= 16 * 1024,
            "{reply:?}: {kept} bytes of the answer are kept"
        );
        let peak = app.process(posthaste_tests::Role::Up, 0).peak_memory_kib();
        assert!(peak < 150 * 1024, "{reply:?}: {peak} KiB in memory");
    }
}

#[test]
fn an_endpoint_that_hangs_does_not_keep_another_waiting() {
    let receiver = Receiver::start();
    receiver.reply("/hangs", [Reply::Hang]);
    let config = Config::new()
        .set("workers.concurrency", "16")
        .github("sick")
        .github("well")
        .endpoint(
            Endpoint::new("hangs", &receiver.url("/hangs"))
                .timeout("3s")
                .max_in_flight(4),
        )
        .endpoint(Endpoint::new("well", &receiver.url("/well")))
        .route("sick", "hangs")
        .route("well", "well");
    let app = TestApp::on(Setup::Own, config).start();
    for number in 0..40 {
        app.send(&Request::github("sick", &format!("sick-{number}"), "push", "{}"))
            .accepted();
    }

    let began = Instant::now();
    for number in 0..20 {
        app.send(&Request::github("well", &format!("well-{number}"), "push", "{}"))
            .accepted();
    }
    posthaste_tests::until(Duration::from_secs(30), "the well one has its 20", || {
        receiver.received_on("/well").len() == 20
    });
    let took = began.elapsed();
    receiver.reply("/hangs", [Reply::Status(200)]);
    app.until_finished();

    // One time-out of the other would already be 3 s.
    assert!(
        took < Duration::from_millis(2_900),
        "the well endpoint waited {took:?}"
    );
}

/// Runs an app whose endpoint replies like this, sends one event, and returns its job.
fn run(
    setup: Setup,
    receiver: &Receiver,
    replies: impl Into<Vec<Reply>>,
    shape: impl FnOnce(Endpoint) -> Endpoint,
) -> (TestApp, String) {
    receiver.reply("/hooks", replies);
    let config = Config::new()
        .github("github")
        .endpoint(shape(Endpoint::new("orders", &receiver.url("/hooks"))))
        .route("github", "orders");
    let app = TestApp::on(setup, config).start();
    let event = app
        .send(&Request::github(
            "github",
            "ending-1",
            "push",
            r#"{"ref":"main"}"#,
        ))
        .accepted();
    let job = app.job_of(&event);
    (app, job)
}

fn waits(received: &[Received]) -> Vec<Duration> {
    received.windows(2).map(|pair| pair[1].at - pair[0].at).collect()
}

fn attempts(shown: &Value) -> &[Value] {
    TestApp::attempts(shown)
}

fn statuses(shown: &Value) -> Vec<u64> {
    attempts(shown)
        .iter()
        .map(|attempt| attempt["http_status"].as_u64().unwrap_or(0))
        .collect()
}

fn outcomes(shown: &Value) -> Vec<&str> {
    attempts(shown)
        .iter()
        .map(|attempt| attempt["outcome"].as_str().unwrap_or(""))
        .collect()
}

fn error_classes(shown: &Value) -> Vec<String> {
    attempts(shown)
        .iter()
        .map(|attempt| attempt["error_class"].as_str().unwrap_or("").to_owned())
        .collect()
}

fn duration_ms(shown: &Value, attempt: usize) -> u64 {
    attempts(shown)[attempt]["duration_ms"]
        .as_u64()
        .unwrap_or(u64::MAX)
}
