//! SIGTERM: stop taking, finish what runs, give back the rest, charge nobody.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use posthaste_tests::{Config, Endpoint, LONG, Receiver, Reply, Request, Response, Role, Setup, TestApp};

in_each_setup! {
    fn what_runs_is_finished_within_the_grace_period(setup) {
        let receiver = Receiver::start();
        receiver.reply("/hooks", [Reply::After(Duration::from_secs(1), 200)]);
        let mut app = app(one_of(setup), &receiver, "\"20s\"");
        let event = app.send(&Request::github("github", "stop-1", "push", "{}")).accepted();
        receiver.until_received(1);

        let worker = app.process(setup.worker(), 0);
        let began = Instant::now();
        worker.sigterm();
        let status = worker.until_ended(LONG);

        assert!(status.success(), "{status:?}");
        assert!(began.elapsed() < Duration::from_secs(10), "a stop took {:?}", began.elapsed());
        let shown = app.job(&app.job_of(&event));
        assert_eq!(shown["state"], "succeeded");
        assert_eq!(TestApp::attempts(&shown).len(), 1);
        assert_eq!(receiver.count(), 1);
    }
}

in_each_setup! {
    fn what_does_not_end_in_time_is_given_back_and_its_only_attempt_is_not_spent(setup) {
        let receiver = Receiver::start();
        receiver.reply("/hooks", [Reply::Hang]);
        let mut app = app(one_of(setup), &receiver, "\"1s\"");
        let event = app.send(&Request::github("github", "stop-2", "push", "{}")).accepted();
        receiver.until_received(1);
        let job = app.job_of(&event);

        let worker = app.process(setup.worker(), 0);
        worker.sigterm();
        let status = worker.until_ended(Duration::from_secs(20));
        let stopped = app.job(&job);
        receiver.reply("/hooks", [Reply::Status(200)]);
        app.process(setup.worker(), 0).start();
        let shown = app.until_state(&job, "succeeded");

        assert!(status.success(), "{status:?}");
        assert_eq!(stopped["state"], "queued", "{stopped:#}");
        assert!(TestApp::attempts(&stopped).is_empty(), "{stopped:#}");
        assert_eq!(receiver.count(), 2);
        let numbers: Vec<_> = receiver.received().iter().map(|request| request.header("posthaste-attempt")).collect();
        assert_eq!(numbers, [Some("1".to_owned()), Some("1".to_owned())]);
        assert_eq!(TestApp::attempts(&shown).len(), 1);
    }
}

#[test]
fn a_request_under_way_is_answered_and_a_silent_connection_does_not_hold_up_the_stop() {
    let receiver = Receiver::start();
    let mut app = app(
        Setup::Scaled {
            ingress: 1,
            workers: 1,
        },
        &receiver,
        "\"20s\"",
    );
    let request = Request::github("github", "stop-3", "push", "{\"ref\":\"main\"}");
    let head = request.head();
    let mut under_way = connect(&app);
    under_way.write_all(head.as_bytes()).expect("it reads");
    under_way.write_all(&request.body[..5]).expect("it reads");
    let silent = connect(&app);
    // One that is answered after the others were accepted tells that the server has taken them.
    assert_eq!(app.send(&Request::new("GET", "/healthz", "")).status, 200);

    let ingress = app.process(Role::Ingress, 0);
    let address = ingress.address();
    ingress.sigterm();
    posthaste_tests::until(LONG, "no more is taken", || TcpStream::connect(address).is_err());
    under_way.write_all(&request.body[5..]).expect("it reads");
    let answer = Response::read(&mut under_way).expect("it answers");
    let status = ingress.until_ended(Duration::from_secs(20));
    app.until_finished();

    answer.accepted();
    assert!(status.success(), "{status:?}");
    assert_eq!(receiver.count(), 1);
    drop(silent);
}

#[test]
fn a_second_signal_gives_back_at_once() {
    let receiver = Receiver::start();
    receiver.reply("/hooks", [Reply::Hang]);
    let mut app = app(Setup::Own, &receiver, "\"50s\"");
    let event = app
        .send(&Request::github("github", "stop-4", "push", "{}"))
        .accepted();
    receiver.until_received(1);
    let job = app.job_of(&event);

    let up = app.process(Role::Up, 0);
    up.sigterm();
    let address = up.address();
    posthaste_tests::until(LONG, "the first is heard", || {
        TcpStream::connect(address).is_err()
    });
    up.sigterm();
    up.until_ended(Duration::from_secs(15));

    assert_eq!(app.job(&job)["state"], "queued");
    app.leaves(&job);
}

#[test]
fn a_stop_while_idle_is_quick() {
    let receiver = Receiver::start();
    for setup in [
        Setup::Own,
        Setup::Scaled {
            ingress: 1,
            workers: 1,
        },
    ] {
        let mut app = app(setup, &receiver, "\"20s\"");
        let roles = if setup == Setup::Own {
            vec![Role::Up]
        } else {
            vec![Role::Ingress, Role::Workers]
        };
        for role in roles {
            let process = app.process(role, 0);
            process.sigterm();
            let status = process.until_ended(Duration::from_secs(5));
            assert!(status.success(), "{role:?}: {status:?}");
        }
    }
}

fn app(setup: Setup, receiver: &Receiver, grace: &str) -> TestApp {
    let endpoint = Endpoint::new("orders", &receiver.url("/hooks"))
        .timeout("60s")
        .retry(1, "50ms", "50ms");
    let config = Config::new()
        .set("workers.grace", grace)
        .github("github")
        .endpoint(endpoint)
        .route("github", "orders");
    TestApp::on(setup, config).start()
}

/// The same with one process of each role, so that nobody else takes over.
const fn one_of(setup: Setup) -> Setup {
    match setup {
        Setup::Scaled { .. } => Setup::Scaled {
            ingress: 1,
            workers: 1,
        },
        other => other,
    }
}

fn connect(app: &TestApp) -> TcpStream {
    let stream = TcpStream::connect(app.address()).expect("it listens");
    stream
        .set_read_timeout(Some(LONG))
        .expect("a time-out can be set");
    stream
}
