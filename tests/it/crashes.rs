//! Lose any process at any instruction: what got a 200 is delivered.

use std::time::Duration;

use posthaste_tests::{Config, Endpoint, LONG, Load, Receiver, Reply, Request, Role, Setup, TestApp, until};

const EVENTS: usize = 300;
/// Jobs that a process runs at once, and so the most that one crash can deliver twice.
const CONCURRENCY: usize = 8;
const TWO_WORKERS: Setup = Setup::Scaled {
    ingress: 1,
    workers: 2,
};
const SCALED: Setup = Setup::Scaled {
    ingress: 2,
    workers: 2,
};

#[test]
fn nothing_acknowledged_is_lost_when_up_is_killed_and_started_again() {
    let receiver = Receiver::start();
    let mut app = app(Setup::Own, &receiver);
    let load = start_load(&app);

    for accepted in [EVENTS / 4, EVENTS / 2] {
        load.until_accepted(accepted);
        let up = app.process(Role::Up, 0);
        up.kill_9();
        up.start();
    }
    let outcome = load.finish();
    app.until_finished();

    outcome.is_delivered(&receiver, 2 * CONCURRENCY);
}

#[test]
fn nothing_acknowledged_is_lost_or_doubled_when_an_ingress_is_killed_and_started_again() {
    let receiver = Receiver::start();
    let mut app = app(SCALED, &receiver);
    let load = start_load(&app);

    for (index, accepted) in [EVENTS / 4, EVENTS / 2].into_iter().enumerate() {
        load.until_accepted(accepted);
        let ingress = app.process(Role::Ingress, index);
        ingress.kill_9();
        ingress.start();
    }
    let outcome = load.finish();
    app.until_finished();

    outcome.is_delivered(&receiver, 0);
}

#[test]
fn nothing_acknowledged_is_lost_when_workers_are_killed_and_started_again() {
    let receiver = Receiver::start();
    let mut app = app(SCALED, &receiver);
    let load = start_load(&app);

    for (index, delivered) in [EVENTS / 4, EVENTS / 2].into_iter().enumerate() {
        receiver.until_received(delivered);
        let workers = app.process(Role::Workers, index);
        workers.kill_9();
        workers.start();
    }
    let outcome = load.finish();
    app.until_finished();

    outcome.is_delivered(&receiver, 2 * CONCURRENCY);
}

#[test]
fn what_a_killed_worker_had_under_way_is_done_by_another_that_goes_on_undisturbed() {
    let receiver = Receiver::start();
    receiver.reply("/hooks", [Reply::Hang]);
    let config = config(Endpoint::new("orders", &receiver.url("/hooks")).timeout("60s"));
    let mut app = TestApp::on(TWO_WORKERS, config).start();
    app.process(Role::Workers, 1).signal("STOP");
    let event = app
        .send(&Request::github("github", "orphan", "push", "{}"))
        .accepted();
    receiver.until_received(1);

    app.process(Role::Workers, 0).kill_9();
    receiver.reply("/hooks", [Reply::Status(200)]);
    app.process(Role::Workers, 1).signal("CONT");
    let shown = app.until_state(&app.job_of(&event), "succeeded");

    assert_eq!(receiver.count(), 2, "the orphan was not run exactly once more");
    assert_eq!(
        TestApp::attempts(&shown).len(),
        1,
        "the crash spent an attempt: {shown:#}"
    );
}

#[test]
fn a_worker_that_was_frozen_beyond_its_lease_cannot_overwrite_the_ending_of_another() {
    let receiver = Receiver::start();
    receiver.reply("/hooks", [Reply::Hang]);
    let config = config(Endpoint::new("orders", &receiver.url("/hooks")).timeout("2s"));
    let mut app = TestApp::on(TWO_WORKERS, config).start();
    app.process(Role::Workers, 1).signal("STOP");
    let event = app
        .send(&Request::github("github", "frozen", "push", "{}"))
        .accepted();
    receiver.until_received(1);
    app.process(Role::Workers, 0).signal("STOP");
    receiver.reply("/hooks", [Reply::Status(200)]);
    app.process(Role::Workers, 1).signal("CONT");
    let job = app.job_of(&event);
    app.until_state(&job, "succeeded");

    let frozen = app.process(Role::Workers, 0);
    frozen.signal("CONT");
    until(LONG, "it has found its lease lost", || {
        frozen.log().contains("lease was lost")
    });
    let shown = app.job(&job);

    assert_eq!(shown["state"], "succeeded", "{shown:#}");
    assert_eq!(TestApp::attempts(&shown).len(), 1, "{shown:#}");
    assert_eq!(receiver.count(), 2);
}

#[test]
fn a_job_that_outlives_many_leases_is_run_once() {
    let receiver = Receiver::start();
    // A lease lasts 10 s: without renewal the other worker would have it.
    receiver.reply("/hooks", [Reply::After(Duration::from_secs(16), 200)]);
    let config = config(Endpoint::new("orders", &receiver.url("/hooks")).timeout("60s"));
    let app = TestApp::on(TWO_WORKERS, config).start();

    app.send(&Request::github("github", "long", "push", "{}"))
        .accepted();
    app.until_finished();

    assert_eq!(receiver.count(), 1, "it ran twice");
}

fn app(setup: Setup, receiver: &Receiver) -> TestApp {
    receiver.reply("/hooks", [Reply::After(Duration::from_millis(10), 200)]);
    TestApp::on(setup, config(Endpoint::new("orders", &receiver.url("/hooks")))).start()
}

fn config(endpoint: Endpoint) -> Config {
    Config::new()
        .set("workers.concurrency", &CONCURRENCY.to_string())
        .github("github")
        .endpoint(endpoint)
        .route("github", "orders")
}

fn start_load(app: &TestApp) -> Load {
    let requests = (0..EVENTS)
        .map(|number| {
            Request::github(
                "github",
                &format!("crash-{number}"),
                "push",
                format!("{{\"number\":{number}}}"),
            )
        })
        .collect();
    Load::start(app.addresses(), requests, 4)
}
