//! A queue that an operator has paused.

use posthaste_tests::{Config, Endpoint, LONG, Receiver, Request, Setup, TestApp, until};

in_each_setup! {
    fn a_paused_queue_delivers_nothing_over_restarts_and_everything_when_it_is_resumed(setup) {
        let receiver = Receiver::start();
        let mut app = app(setup, &receiver);
        let name = &app.run(&["queues", "pause", "webhooks"]).ok();
        assert!(name.stdout.contains("paused webhooks"), "{name:?}");
        until_told(&mut app, setup, "paused");

        let events: Vec<String> = (0..5).map(|number| send(&app, number)).collect();
        let workers = app.process(setup.worker(), 0);
        workers.kill_9();
        workers.start();
        let listed = app.json(&["queues", "list"]);
        assert!(listed[0]["paused_at"].is_string(), "{listed:#}");
        assert_eq!(listed[0]["jobs"]["queued"], 5, "{listed:#}");
        assert_eq!(receiver.count(), 0, "delivered in a pause");

        app.run(&["queues", "resume", "webhooks"]).ok();
        app.until_finished();

        assert_eq!(receiver.count(), events.len());
        assert!(app.json(&["queues", "list"])[0]["paused_at"].is_null());
    }
}

#[test]
fn a_pause_holds_although_redis_forgets_it() {
    let setup = Setup::Scaled {
        ingress: 1,
        workers: 2,
    };
    let receiver = Receiver::start();
    let mut app = app(setup, &receiver);
    app.run(&["queues", "pause", "webhooks"]).ok();
    until_told(&mut app, setup, "paused");
    send(&app, 0);

    redis(&app).command("FLUSHALL");
    until(LONG, "redis holds the job again", || {
        redis(&app).command("ZCARD {webhooks}:active") == ":1"
    });
    until(LONG, "redis is told again", || {
        redis(&app).command("EXISTS {webhooks}:paused") == ":1"
    });
    send(&app, 1);
    assert_eq!(receiver.count(), 0, "delivered in a pause");

    app.run(&["queues", "resume", "webhooks"]).ok();
    app.until_finished();
    assert_eq!(receiver.count(), 2);
}

#[test]
fn a_pause_says_what_it_changed_and_a_queue_that_is_not_there_is_named() {
    let receiver = Receiver::start();
    let app = app(Setup::Own, &receiver);

    for (args, said) in [
        (["queues", "resume", "webhooks"], "was not paused"),
        (["queues", "pause", "webhooks"], "paused webhooks"),
        (["queues", "pause", "webhooks"], "was paused already"),
        (["queues", "resume", "webhooks"], "resumed webhooks"),
    ] {
        let finished = app.run(&args).ok();
        assert!(finished.stdout.contains(said), "{args:?}: {finished:?}");
    }
    let finished = app.run(&["queues", "pause", "webhoks"]);
    assert_eq!(finished.status, Some(2));
    assert!(
        finished.stderr.contains("did you mean \"webhooks\"?"),
        "{finished:?}"
    );
}

fn app(setup: Setup, receiver: &Receiver) -> TestApp {
    let config = Config::new()
        .github("github")
        .endpoint(Endpoint::new("orders", &receiver.url("/hooks")))
        .route("github", "orders");
    TestApp::on(setup, config).start()
}

fn redis(app: &TestApp) -> &posthaste_tests::Redis {
    app.redis.as_ref().expect("it has one")
}

fn send(app: &TestApp, number: usize) -> String {
    app.send(&Request::github(
        "github",
        &format!("pause-{number}"),
        "push",
        "{}",
    ))
    .accepted()
}

/// Waits until every process that works has heard of it.
fn until_told(app: &mut TestApp, setup: Setup, standing: &str) {
    let workers = match setup {
        Setup::Scaled { workers, .. } => workers,
        Setup::Own | Setup::UpOnServers => 1,
    };
    for index in 0..workers {
        let process = app.process(setup.worker(), index);
        until(LONG, "it has heard of it", || {
            process.log().contains(&format!("\"message\":\"{standing}\""))
        });
    }
}
