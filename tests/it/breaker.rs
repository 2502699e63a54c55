//! One sick endpoint hurts itself only.

use std::time::{Duration, Instant};

use posthaste_tests::{Config, Endpoint, LONG, Received, Receiver, Reply, Request, Setup, TestApp, until};

const MIN_CALLS: u32 = 5;
const AT_ONCE: u32 = 4;
/// How long the sick one takes to fail: two probes at a time would be seen.
const FAILS: Reply = Reply::After(Duration::from_millis(300), 500);
const COOLDOWN: Duration = Duration::from_secs(1);
const EVENTS: usize = 30;

#[test]
fn an_open_breaker_parks_jobs_probes_one_at_a_time_and_delivers_all_once_the_endpoint_is_well() {
    let receiver = Receiver::start();
    receiver.reply("/sick", [FAILS]);
    let app = app(Setup::Own, &receiver);

    let events = send(&app, "sick", EVENTS);
    // Those that opened it, and three probes after it.
    until(LONG, "three probes have failed", || {
        receiver.received_on("/sick").len() >= most_to_open() + 3
    });
    let while_sick = app.jobs();
    let called = receiver.received_on("/sick").len();
    receiver.reply("/sick", [Reply::Status(200)]);
    app.until_finished();

    assert!(
        while_sick.iter().any(|job| job["state"] == "parked"),
        "{while_sick:#?}"
    );
    let spent: u64 = while_sick.iter().filter_map(|job| job["attempts"].as_u64()).sum();
    assert!(
        spent as usize <= called,
        "{spent} attempts are spent on {called} calls: {while_sick:#?}"
    );
    let received = receiver.received_on("/sick");
    probes_are_a_cooldown_apart(&received);
    let mut delivered: Vec<String> = app
        .jobs()
        .iter()
        .filter(|job| job["state"] == "succeeded")
        .filter_map(|job| job["event_id"].as_str().map(str::to_owned))
        .collect();
    delivered.sort();
    assert_eq!(delivered, events, "parked jobs were not all delivered");
}

#[test]
fn a_job_waiting_for_a_breaker_spends_no_attempt_even_if_it_has_but_one() {
    let receiver = Receiver::start();
    receiver.reply("/sick", [Reply::Status(500)]);
    let config = Config::new()
        .github("sick")
        .endpoint(
            Endpoint::new("sick", &receiver.url("/sick"))
                .max_in_flight(1)
                .retry(1, "50ms", "50ms")
                .breaker(2, "1s"),
        )
        .route("sick", "sick");
    let app = TestApp::on(Setup::Own, config).start();
    send(&app, "sick", 10);
    until(LONG, "the breaker has opened", || receiver.count() >= 2);

    receiver.reply("/sick", [Reply::Status(200)]);
    app.until_finished();

    let jobs = app.jobs();
    let in_state = |state: &str| jobs.iter().filter(|job| job["state"] == state).count();
    assert_eq!(in_state("dead") + in_state("succeeded"), 10);
    // Two opened it; a probe or two may have come before the endpoint was well.
    assert!(in_state("dead") <= 4, "{jobs:#?}");
    assert_eq!(receiver.count(), 10, "a job was tried twice, or never");
}

in_each_setup! {
    fn another_endpoint_keeps_its_speed_while_one_is_sick(setup) {
        let receiver = Receiver::start();
        receiver.reply("/sick", [Reply::Status(500)]);
        let app = app(setup, &receiver);
        send(&app, "sick", EVENTS);
        until(LONG, "it is sick", || receiver.received_on("/sick").len() >= MIN_CALLS as usize);

        let began = Instant::now();
        send(&app, "well", EVENTS);
        until(LONG, "the well one has all", || receiver.received_on("/well").len() == EVENTS);
        let took = began.elapsed();
        receiver.reply("/sick", [Reply::Status(200)]);
        app.until_finished();

        assert!(took < Duration::from_secs(10), "the well endpoint needed {took:?}");
        assert_eq!(receiver.received_on("/well").len(), EVENTS, "one was delivered twice");
    }
}

#[test]
fn an_endpoint_that_refuses_connections_opens_its_breaker_and_a_well_one_closes_it() {
    let port = posthaste_tests::Port::free();
    let config = Config::new()
        .github("sick")
        .endpoint(sick(&format!("http://{}/sick", port.address())))
        .route("sick", "sick");
    let app = TestApp::on(Setup::Own, config).start();
    send(&app, "sick", EVENTS);
    until(LONG, "jobs are parked", || {
        app.jobs().iter().any(|job| job["state"] == "parked")
    });

    let receiver = Receiver::start_on(&port);
    app.until_finished();

    assert_eq!(receiver.count(), EVENTS, "one was lost or delivered twice");
    assert!(app.jobs().iter().all(|job| job["state"] == "succeeded"));
}

fn app(setup: Setup, receiver: &Receiver) -> TestApp {
    let config = Config::new()
        .github("sick")
        .github("well")
        .endpoint(sick(&receiver.url("/sick")))
        .endpoint(Endpoint::new("well", &receiver.url("/well")))
        .route("sick", "sick")
        .route("well", "well");
    TestApp::on(setup, config).start()
}

fn sick(url: &str) -> Endpoint {
    Endpoint::new("sick", url)
        .max_in_flight(AT_ONCE)
        .retry(12, "200ms", "1s")
        .breaker(MIN_CALLS, "1s")
}

/// Calls that may have begun before the breaker opened.
const fn most_to_open() -> usize {
    MIN_CALLS as usize + AT_ONCE as usize - 1
}

/// Sends so many events and returns their ids, sorted.
fn send(app: &TestApp, source: &str, count: usize) -> Vec<String> {
    let mut events: Vec<String> = (0..count)
        .map(|number| {
            app.send(&Request::github(
                source,
                &format!("{source}-{number}"),
                "push",
                "{}",
            ))
            .accepted()
        })
        .collect();
    events.sort();
    events
}

/// Looks at the failed calls after those that opened the breaker; the first to succeed closes it.
#[track_caller]
fn probes_are_a_cooldown_apart(received: &[Received]) {
    let probes = &received[most_to_open()..most_to_open() + 3];
    for pair in probes.windows(2) {
        let apart = pair[1].at - pair[0].at;
        assert!(
            apart >= COOLDOWN.mul_f64(0.9),
            "two probes are only {apart:?} apart"
        );
    }
}
