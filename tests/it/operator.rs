//! Dead letters and replays, by hand.

use posthaste_tests::{Config, Endpoint, Receiver, Reply, Request, Role, Setup, TestApp};

const WRONG_ID: &str = "01JDZ6W2Q8M3T5V7X9YBCDEFGH";

in_each_setup! {
    fn a_dead_letter_is_listed_shown_and_replayed_as_often_as_asked(setup) {
        let receiver = Receiver::start();
        let (app, event, job) = with_a_dead_letter(setup, &receiver);
        assert_eq!(dead_ids(&app), [job.as_str()]);
        assert_eq!(app.json(&["dead", "show", &job])["id"], job.as_str());

        replay(&app, &job);
        receiver.until_received(2);
        app.until_state(&job, "dead");
        receiver.reply("/hooks", [Reply::Status(200)]);
        replay(&app, &job);
        let shown = app.until_state(&job, "succeeded");

        let received = receiver.received();
        assert_eq!(received.len(), 3);
        assert!(received.iter().all(|request| request.id() == event));
        assert!(received.iter().all(|request| request.body == received[0].body));
        let replays: Vec<_> = received.iter().map(|request| request.header("posthaste-replay")).collect();
        assert_eq!(replays, [None, Some("1".to_owned()), Some("2".to_owned())]);
        assert_eq!(TestApp::attempts(&shown).len(), 3, "an attempt was forgotten: {shown:#}");
        assert!(dead_ids(&app).is_empty());
    }
}

in_each_setup! {
    fn a_replay_while_the_service_is_down_is_done_when_it_is_back(setup) {
        let receiver = Receiver::start();
        let (mut app, _, job) = with_a_dead_letter(setup, &receiver);
        stop_all(&mut app, setup);
        receiver.reply("/hooks", [Reply::Status(200)]);

        assert_eq!(dead_ids(&app), [job.as_str()]);
        replay(&app, &job);
        assert_eq!(app.job(&job)["state"], "queued");
        assert_eq!(receiver.count(), 1, "delivered by nobody");
        start_all(&mut app, setup);
        app.until_state(&job, "succeeded");

        assert_eq!(receiver.count(), 2);
    }
}

in_each_setup! {
    fn a_discarded_dead_letter_is_closed_and_not_delivered(setup) {
        let receiver = Receiver::start();
        let (app, _, job) = with_a_dead_letter(setup, &receiver);

        app.run(&["dead", "discard", "--id", &job, "--yes"]).ok();
        receiver.reply("/hooks", [Reply::Status(200)]);
        app.send(&Request::github("github", "after-discard", "push", "{}")).accepted();
        app.until_finished();

        assert_eq!(app.job(&job)["state"], "discarded");
        assert!(dead_ids(&app).is_empty());
        assert_eq!(receiver.count(), 2, "the discarded one was delivered");
    }
}

#[test]
fn a_replay_with_a_wrong_id_says_so_and_does_nothing() {
    let receiver = Receiver::start();
    let (app, _, job) = with_a_dead_letter(Setup::Own, &receiver);

    for (args, status) in [
        (vec!["dead", "replay", "--id", WRONG_ID, "--yes"], 1),
        (vec!["dead", "discard", "--id", WRONG_ID, "--yes"], 1),
        (vec!["dead", "show", WRONG_ID], 1),
        (vec!["jobs", "show", WRONG_ID], 1),
        (vec!["events", "show", WRONG_ID], 1),
        (vec!["events", "replay", WRONG_ID, "--yes"], 1),
        (vec!["dead", "replay", "--id", "no-id", "--yes"], 2),
        (vec!["jobs", "show", "no-id"], 2),
    ] {
        let finished = app.run(&args);
        assert_eq!(finished.status, Some(status), "{args:?}: {finished:?}");
        let id = if status == 1 { WRONG_ID } else { "no-id" };
        assert!(finished.stderr.contains(id), "{args:?}: {finished:?}");
    }
    assert_eq!(app.job(&job)["state"], "dead");
    assert_eq!(receiver.count(), 1);
}

#[test]
fn a_job_that_is_no_dead_letter_is_not_replayed_as_one() {
    let receiver = Receiver::start();
    let app = TestApp::on(Setup::Own, Config::github_to(&receiver.url("/hooks"))).start();
    let event = app
        .send(&Request::github("github", "alive-1", "push", "{}"))
        .accepted();
    let job = app.job_of(&event);
    app.until_state(&job, "succeeded");

    let finished = app.run(&["dead", "replay", "--id", &job, "--yes"]);

    assert_eq!(finished.status, Some(1), "{finished:?}");
    assert!(finished.stderr.contains(&job), "{finished:?}");
    assert_eq!(app.job(&job)["state"], "succeeded");
    assert_eq!(receiver.count(), 1);
}

#[test]
fn without_a_yes_and_in_a_dry_run_nothing_is_touched() {
    let receiver = Receiver::start();
    let (app, _, job) = with_a_dead_letter(Setup::Own, &receiver);

    let unasked = app.run(&["dead", "replay", "--endpoint", "orders"]);
    let dry = app
        .run(&["dead", "replay", "--endpoint", "orders", "--dry-run"])
        .ok();
    let dry_discard = app
        .run(&["dead", "discard", "--endpoint", "orders", "--dry-run"])
        .ok();

    assert_ne!(unasked.status, Some(0), "{unasked:?}");
    for finished in [dry, dry_discard] {
        assert!(
            (finished.stdout + &finished.stderr).contains('1'),
            "it does not say how many"
        );
    }
    assert_eq!(app.job(&job)["state"], "dead");
    assert_eq!(receiver.count(), 1);
}

#[test]
fn a_filter_replays_what_it_names_and_nothing_else() {
    let receiver = Receiver::start();
    receiver.reply("/a", [Reply::Status(400)]);
    receiver.reply("/b", [Reply::Status(422)]);
    let config = Config::new()
        .github("github")
        .endpoint(Endpoint::new("a", &receiver.url("/a")))
        .endpoint(Endpoint::new("b", &receiver.url("/b")))
        .route("github", "a")
        .route("github", "b");
    let app = TestApp::on(Setup::Own, config).start();
    for number in 0..5 {
        app.send(&Request::github(
            "github",
            &format!("filter-{number}"),
            "push",
            "{}",
        ))
        .accepted();
    }
    app.until_finished();
    assert_eq!(dead_ids(&app).len(), 10);
    receiver.reply("/a", [Reply::Status(200)]);
    receiver.reply("/b", [Reply::Status(200)]);

    app.run(&["dead", "replay", "--endpoint", "a", "--yes"]).ok();
    app.until_finished();

    assert_eq!(receiver.received_on("/a").len(), 10);
    assert_eq!(
        receiver.received_on("/b").len(),
        5,
        "the other endpoint was replayed too"
    );
    let left = app.json(&["dead", "list", "--endpoint", "b"]);
    assert_eq!(left.as_array().map(Vec::len), Some(5));
    assert_eq!(dead_ids(&app).len(), 5);
}

in_each_setup! {
    fn an_unrouted_event_is_kept_and_replayed_once_there_is_a_route(setup) {
        let receiver = Receiver::start();
        let mut app = TestApp::on(setup, Config::new().github("github")).start();
        let body = r#"{"ref":"unrouted"}"#;
        let event = app.send(&Request::github("github", "unrouted-1", "push", body)).accepted();
        let listed = app.json(&["events", "list"]);
        assert_eq!((&listed[0]["id"], &listed[0]["jobs"]), (&event.clone().into(), &0.into()));
        assert!(app.jobs().is_empty());

        stop_all(&mut app, setup);
        app.reconfigure(Config::github_to(&receiver.url("/hooks")));
        start_all(&mut app, setup);
        app.run(&["events", "replay", &event, "--yes"]).ok();
        receiver.until_received(1);
        app.until_finished();

        let received = receiver.received();
        assert_eq!(received.len(), 1);
        assert_eq!((received[0].id(), received[0].body.as_slice()), (event, body.as_bytes()));
    }
}

#[test]
fn a_succeeded_event_can_be_replayed_and_says_that_it_is_a_replay() {
    let receiver = Receiver::start();
    let app = TestApp::on(Setup::Own, Config::github_to(&receiver.url("/hooks"))).start();
    let event = app
        .send(&Request::github("github", "again-1", "push", "{}"))
        .accepted();
    app.until_finished();

    let replayed = app.run(&["events", "replay", &event, "--yes"]).ok();
    assert_eq!(replayed.stdout, "queued 1 delivery\n");
    receiver.until_received(2);
    app.until_finished();

    let received = receiver.received();
    assert_eq!(received.len(), 2);
    assert!(received.iter().all(|request| request.id() == event));
    assert_eq!(received[1].header("posthaste-replay").as_deref(), Some("1"));
}

/// An app with one event, which its endpoint answered with 400; the event's id, and its job's.
fn with_a_dead_letter(setup: Setup, receiver: &Receiver) -> (TestApp, String, String) {
    receiver.reply("/hooks", [Reply::Status(400)]);
    let app = TestApp::on(setup, Config::github_to(&receiver.url("/hooks"))).start();
    let event = app
        .send(&Request::github("github", "dead-1", "push", r#"{"ref":"main"}"#))
        .accepted();
    let job = app.job_of(&event);
    app.until_state(&job, "dead");
    (app, event, job)
}

#[track_caller]
fn replay(app: &TestApp, job: &str) {
    app.run(&["dead", "replay", "--id", job, "--yes"]).ok();
}

#[track_caller]
fn dead_ids(app: &TestApp) -> Vec<String> {
    let listed = app.json(&["dead", "list"]);
    let ids = listed.as_array().expect("a list").iter();
    ids.map(|job| job["id"].as_str().expect("a job has an id").to_owned())
        .collect()
}

fn roles(setup: Setup) -> Vec<(Role, usize)> {
    match setup {
        Setup::Own | Setup::UpOnServers => vec![(Role::Up, 0)],
        Setup::Scaled { ingress, workers } => {
            let ingress = (0..ingress).map(|index| (Role::Ingress, index));
            ingress
                .chain((0..workers).map(|index| (Role::Workers, index)))
                .collect()
        }
    }
}

fn stop_all(app: &mut TestApp, setup: Setup) {
    for (role, index) in roles(setup) {
        let process = app.process(role, index);
        process.sigterm();
        let status = process.until_ended(posthaste_tests::LONG);
        assert!(status.success(), "{role:?} ended with {status:?}");
    }
}

fn start_all(app: &mut TestApp, setup: Setup) {
    for (role, index) in roles(setup) {
        app.process(role, index).start();
    }
}
