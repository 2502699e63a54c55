//! Redis or PostgreSQL gone: processes stay up, say so, and go on when it is back.

use std::time::Duration;

use posthaste_tests::{
    Config, Endpoint, LONG, Load, Port, Receiver, Reply, Request, Response, Role, Setup, TestApp, until,
};

const EVENTS: usize = 300;
const WAITING: usize = 10;
const SCALED: Setup = Setup::Scaled {
    ingress: 2,
    workers: 2,
};

#[test]
fn nothing_is_lost_or_doubled_when_redis_is_flushed() {
    let receiver = slow_receiver();
    let app = TestApp::on(SCALED, Config::github_to(&receiver.url("/hooks"))).start();
    let load = start_load(&app);

    for accepted in [EVENTS / 4, EVENTS / 2] {
        load.until_accepted(accepted);
        let answer = app.redis.as_ref().expect("scaled out").command("FLUSHALL");
        assert_eq!(answer, "+OK");
    }
    let outcome = load.finish();
    app.until_finished();

    outcome.is_delivered(&receiver, 0);
}

#[test]
fn nothing_is_lost_when_redis_is_killed_and_comes_back_empty() {
    let receiver = slow_receiver();
    let mut app = TestApp::on(SCALED, Config::github_to(&receiver.url("/hooks"))).start();
    let load = start_load(&app);

    load.until_accepted(EVENTS / 4);
    app.redis.as_mut().expect("scaled out").kill_9();
    load.until_accepted(EVENTS / 2);
    until_ready(&app, 503);
    app.redis.as_mut().expect("scaled out").start_again();
    until_ready(&app, 200);
    let outcome = load.finish();
    app.until_finished();

    outcome.is_delivered(&receiver, 0);
}

#[test]
fn jobs_that_wait_for_their_next_attempt_come_back_when_redis_is_flushed() {
    let receiver = Receiver::start();
    let app = app_with_waiting_jobs(&receiver);

    assert_eq!(app.redis.as_ref().expect("scaled out").command("FLUSHALL"), "+OK");
    app.until_finished();

    assert_eq!(
        receiver.count(),
        2 * WAITING,
        "a job was tried another number of times than twice"
    );
    assert!(app.jobs().iter().all(|job| job["state"] == "succeeded"));
}

#[test]
fn jobs_that_wait_for_their_next_attempt_come_back_when_redis_starts_empty() {
    let receiver = Receiver::start();
    let mut app = app_with_waiting_jobs(&receiver);

    let redis = app.redis.as_mut().expect("scaled out");
    redis.kill_9();
    redis.start_again();
    app.until_finished();

    assert_eq!(
        receiver.count(),
        2 * WAITING,
        "a job was tried another number of times than twice"
    );
    assert!(app.jobs().iter().all(|job| job["state"] == "succeeded"));
}

#[test]
fn what_an_ingress_cannot_push_reaches_the_workers_all_the_same() {
    let receiver = Receiver::start();
    let nobody = Port::free();
    let setup = Setup::Scaled {
        ingress: 1,
        workers: 1,
    };
    let mut app = TestApp::on(setup, Config::github_to(&receiver.url("/hooks"))).prepare();
    let ingress = app.process(Role::Ingress, 0);
    ingress.set("POSTHASTE__QUEUE__URL", &format!("redis://{}", nobody.address()));
    ingress.start();
    let workers = app.process(Role::Workers, 0);
    workers.start();
    // The first sight of this Redis makes the rescuer push everything; later it is up to the relay.
    until(LONG, "the rescuer knows this Redis", || {
        workers.log().contains("pushed every unfinished job")
    });

    for number in 0..20 {
        app.send(&Request::github(
            "github",
            &format!("unpushed-{number}"),
            "push",
            "{}",
        ))
        .accepted();
    }
    app.process(Role::Ingress, 0).kill_9();
    app.until_finished();

    assert_eq!(receiver.count(), 20);
}

#[test]
fn without_redis_at_the_start_events_are_accepted_and_jobs_flow_when_it_comes() {
    let receiver = Receiver::start();
    let mut app = TestApp::on(
        Setup::Scaled {
            ingress: 1,
            workers: 1,
        },
        Config::github_to(&receiver.url("/hooks")),
    )
    .redis_down()
    .prepare();
    app.process(Role::Ingress, 0).start();
    app.process(Role::Workers, 0).spawn();

    let accepted: Vec<String> = (0..10)
        .map(|number| {
            app.send(&Request::github(
                "github",
                &format!("no-redis-{number}"),
                "push",
                "{}",
            ))
            .accepted()
        })
        .collect();
    let not_ready = ready(&app);
    app.redis.as_mut().expect("scaled out").start_again();
    until_ready(&app, 200);
    app.until_finished();

    assert_eq!(not_ready.status, 503);
    assert!(
        String::from_utf8_lossy(&not_ready.body).contains("queue"),
        "{not_ready:?}"
    );
    let mut delivered: Vec<String> = receiver.received().iter().map(|request| request.id()).collect();
    delivered.sort();
    assert_eq!(delivered, sorted(accepted));
}

#[test]
fn nothing_is_lost_when_every_connection_to_postgresql_is_ended() {
    let receiver = slow_receiver();
    let app = TestApp::on(SCALED, Config::github_to(&receiver.url("/hooks"))).start();
    let load = start_load(&app);

    let mut ended = 0;
    for accepted in [EVENTS / 4, EVENTS / 2, EVENTS * 3 / 4] {
        load.until_accepted(accepted);
        ended += app.database.as_ref().expect("scaled out").terminate_connections();
    }

    assert!(ended > 0, "there was no connection to end");
    let outcome = load.finish();
    app.until_finished();

    outcome.is_delivered(&receiver, 0);
}

#[test]
fn without_a_ledger_nothing_is_accepted_and_the_answer_is_503_until_it_is_back() {
    let receiver = Receiver::start();
    let app = TestApp::on(SCALED, Config::github_to(&receiver.url("/hooks")))
        .cuttable_ledger()
        .start();
    let wire = app.wire.as_ref().expect("the wire was asked for");
    let request = Request::github("github", "cut-1", "push", "{}");

    wire.cut();
    let refused = app.send(&request);
    let not_ready = ready(&app);
    wire.mend();
    until_ready(&app, 200);
    let listed = app.json(&["events", "list"]);
    until(LONG, "the provider's next try is accepted", || {
        app.send(&request).status == 200
    });
    app.until_finished();

    assert_eq!(refused.status, 503);
    let wait: u32 = refused
        .header("retry-after")
        .and_then(|value| value.parse().ok())
        .expect("503 says when to try again");
    assert!((1..=300).contains(&wait), "{wait}");
    assert_eq!(not_ready.status, 503);
    assert!(
        String::from_utf8_lossy(&not_ready.body).contains("ledger"),
        "{not_ready:?}"
    );
    assert_eq!(
        listed,
        serde_json::json!([]),
        "an event that was refused is in the ledger"
    );
    assert_eq!(receiver.count(), 1);
}

#[test]
fn deliveries_under_way_while_the_ledger_is_away_are_not_repeated() {
    let receiver = Receiver::start();
    receiver.reply("/hooks", [Reply::After(Duration::from_secs(2), 200)]);
    let setup = Setup::Scaled {
        ingress: 1,
        workers: 1,
    };
    let app = TestApp::on(setup, Config::github_to(&receiver.url("/hooks")))
        .cuttable_ledger()
        .start();
    let wire = app.wire.as_ref().expect("the wire was asked for");
    app.send(&Request::github("github", "under-way", "push", "{}"))
        .accepted();
    receiver.until_received(1);

    wire.cut();
    // The delivery ends while its ending cannot be written, well before the lease does.
    std::thread::sleep(Duration::from_secs(4));
    wire.mend();
    app.until_finished();

    assert_eq!(receiver.count(), 1, "it was delivered again");
}

#[test]
fn without_a_ledger_at_the_start_processes_wait_for_it() {
    let receiver = Receiver::start();
    let mut app = TestApp::on(
        Setup::Scaled {
            ingress: 1,
            workers: 1,
        },
        Config::github_to(&receiver.url("/hooks")),
    )
    .cuttable_ledger()
    .prepare();
    app.wire.as_ref().expect("the wire was asked for").cut();
    app.process(Role::Ingress, 0).spawn();
    app.process(Role::Workers, 0).spawn();
    let request = Request::github("github", "early", "push", "{}");
    app.process(Role::Ingress, 0).until_working();
    assert_eq!(app.send(&request).status, 503);

    app.wire.as_ref().expect("the wire was asked for").mend();
    until(LONG, "the event is accepted", || app.send(&request).status == 200);
    app.until_finished();

    assert_eq!(receiver.count(), 1);
}

#[test]
fn a_redis_that_stalls_holds_up_no_acknowledgement_and_nothing_runs_twice() {
    let receiver = Receiver::start();
    let app = TestApp::on(SCALED, Config::github_to(&receiver.url("/hooks"))).start();
    app.send(&Request::github("github", "before", "push", "{}"))
        .accepted();
    receiver.until_received(1);

    app.redis
        .as_ref()
        .expect("scaled out")
        .command("CLIENT PAUSE 4000 ALL");
    let began = std::time::Instant::now();
    for number in 0..10 {
        app.send(&Request::github(
            "github",
            &format!("stalled-{number}"),
            "push",
            "{}",
        ))
        .accepted();
    }
    let took = began.elapsed();
    app.until_finished();

    assert!(
        took < Duration::from_secs(3),
        "acknowledgements waited for Redis: {took:?}"
    );
    assert_eq!(receiver.count(), 11);
}

/// An app with jobs that were tried once, without success, and are due again in 4 s.
fn app_with_waiting_jobs(receiver: &Receiver) -> TestApp {
    let replies = [vec![Reply::Status(503); WAITING], vec![Reply::Status(200)]].concat();
    receiver.reply("/hooks", replies);
    let endpoint = Endpoint::new("orders", &receiver.url("/hooks")).retry(3, "4s", "4s");
    let config = Config::new()
        .github("github")
        .endpoint(endpoint)
        .route("github", "orders");
    let app = TestApp::on(SCALED, config).start();
    for number in 0..WAITING {
        app.send(&Request::github(
            "github",
            &format!("waiting-{number}"),
            "push",
            "{}",
        ))
        .accepted();
    }
    until(LONG, "every job waits", || {
        app.jobs().iter().all(|job| job["state"] == "retrying")
    });
    app
}

fn slow_receiver() -> Receiver {
    let receiver = Receiver::start();
    receiver.reply("/hooks", [Reply::After(Duration::from_millis(20), 200)]);
    receiver
}

fn start_load(app: &TestApp) -> Load {
    let requests = (0..EVENTS)
        .map(|number| Request::github("github", &format!("outage-{number}"), "push", "{}"))
        .collect();
    Load::start(app.addresses(), requests, 4)
}

fn ready(app: &TestApp) -> Response {
    app.send(&Request::new("GET", "/readyz", ""))
}

#[track_caller]
fn until_ready(app: &TestApp, status: u16) {
    until(LONG, &format!("/readyz answers {status}"), || {
        ready(app).status == status
    });
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}
