//! The same event is accepted once.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use posthaste_tests::{Config, Receiver, Request, Role, Setup, TestApp};

const COPIES: usize = 100;

in_each_setup! {
    fn of_a_hundred_copies_at_once_one_is_accepted_and_delivered_once(setup) {
        let receiver = Receiver::start();
        let app = TestApp::on(setup, Config::github_to(&receiver.url("/hooks"))).start();
        let request = Request::github("github", "copies-1", "push", r#"{"ref":"main"}"#);
        let addresses = app.addresses();
        let together = Barrier::new(COPIES);

        let answers: Vec<(String, String)> = thread::scope(|scope| {
            let senders: Vec<_> = (0..COPIES)
                .map(|number| {
                    let (request, together, address) = (&request, &together, addresses[number % addresses.len()]);
                    scope.spawn(move || {
                        together.wait();
                        let response = request.send(address);
                        assert_eq!(response.status, 200, "{response:?}");
                        (response.text("status"), response.text("event_id"))
                    })
                })
                .collect();
            senders.into_iter().map(|sender| sender.join().expect("a sender is answered")).collect()
        });
        app.until_finished();

        let with_status = |status: &str| answers.iter().filter(|answer| answer.0 == status).count();
        assert_eq!(with_status("accepted"), 1);
        assert_eq!(with_status("duplicate"), COPIES - 1);
        let ids: BTreeSet<&str> = answers.iter().map(|answer| answer.1.as_str()).collect();
        assert_eq!(ids.len(), 1, "copies were told different ids: {ids:?}");
        assert_eq!(receiver.count(), 1, "a copy was delivered");
        assert_eq!(app.jobs().len(), 1, "a copy has a job");
    }
}

in_each_setup! {
    fn a_copy_that_comes_after_the_delivery_or_after_a_restart_is_a_duplicate(setup) {
        let receiver = Receiver::start();
        let mut app = TestApp::on(setup, Config::github_to(&receiver.url("/hooks"))).start();
        let request = Request::github("github", "late-1", "push", "{}");
        let event = app.send(&request).accepted();
        app.until_finished();

        let after_delivery = app.send(&request);
        let process = app.process(first_role(setup), 0);
        process.kill_9();
        process.start();
        let after_restart = app.send(&request);
        app.until_finished();

        for answer in [after_delivery, after_restart] {
            assert_eq!((answer.text("status"), answer.text("event_id")), ("duplicate".to_owned(), event.clone()));
        }
        assert_eq!(receiver.count(), 1);
    }
}

#[test]
fn the_same_body_with_another_id_and_the_same_id_from_another_source_are_other_events() {
    let receiver = Receiver::start();
    let config = Config::github_to(&receiver.url("/hooks"))
        .github("fork")
        .route("fork", "orders");
    let app = TestApp::on(Setup::Own, config).start();

    app.send(&Request::github("github", "id-1", "push", "{}"))
        .accepted();
    app.send(&Request::github("github", "id-2", "push", "{}"))
        .accepted();
    app.send(&Request::github("fork", "id-1", "push", "{}"))
        .accepted();
    app.until_finished();

    assert_eq!(receiver.count(), 3);
}

#[test]
fn without_an_id_the_body_is_the_identity() {
    let receiver = Receiver::start();
    let config = Config::github_to(&receiver.url("/hooks"))
        .source("open", "scheme = \"none\"")
        .route("open", "orders");
    let app = TestApp::on(Setup::Own, config).start();

    app.send(&Request::webhook("open", "one")).accepted();
    app.send(&Request::webhook("open", "two")).accepted();
    let again = app.send(&Request::webhook("open", "one"));
    app.until_finished();

    assert_eq!(again.text("status"), "duplicate");
    assert_eq!(receiver.count(), 2);
}

#[test]
fn a_refused_request_does_not_use_up_the_id() {
    let receiver = Receiver::start();
    let app = TestApp::on(Setup::Own, Config::github_to(&receiver.url("/hooks"))).start();
    let request = Request::github("github", "burnt-1", "push", "{}");

    let forged = app.send(
        &request
            .clone()
            .with("x-hub-signature-256", &format!("sha256={:064}", 0)),
    );
    app.send(&request).accepted();
    app.until_finished();

    assert_eq!(forged.status, 401);
    assert_eq!(receiver.count(), 1);
}

fn first_role(setup: Setup) -> Role {
    match setup {
        Setup::Own | Setup::UpOnServers => Role::Up,
        Setup::Scaled { .. } => Role::Ingress,
    }
}
