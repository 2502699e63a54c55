//! SIGHUP: sources, endpoints and routes are taken anew, or the old ones stay.

use posthaste_tests::{Config, Endpoint, LONG, Receiver, Request, Role, Setup, TestApp, until};

#[test]
fn after_a_hangup_new_sources_and_endpoints_are_there_and_nothing_was_restarted() {
    let receiver = Receiver::start();
    let config = Config::github_to(&receiver.url("/hooks"));
    let mut app = TestApp::on(
        Setup::Scaled {
            ingress: 1,
            workers: 1,
        },
        config.clone(),
    )
    .start();
    let to_the_new_one = Request::github("fork", "reload-1", "push", "{}");
    assert_eq!(app.send(&to_the_new_one).status, 404);

    app.reconfigure(
        config
            .github("fork")
            .endpoint(Endpoint::new("forks", &receiver.url("/forks")))
            .route("fork", "forks"),
    );
    app.process(Role::Workers, 0).signal("HUP");
    app.process(Role::Ingress, 0).signal("HUP");
    until(LONG, "the new source is there", || {
        app.send(&to_the_new_one).status == 200
    });
    app.until_finished();

    assert_eq!(receiver.received_on("/forks").len(), 1);
    for role in [Role::Ingress, Role::Workers] {
        assert_eq!(
            app.process(role, 0).log().matches("\"starting\"").count(),
            1,
            "{role:?} was restarted"
        );
    }
}

#[test]
fn a_broken_file_is_refused_at_a_hangup_and_the_old_one_stays() {
    let receiver = Receiver::start();
    let config = Config::github_to(&receiver.url("/hooks"));
    let mut app = TestApp::on(Setup::Own, config.clone()).start();

    app.reconfigure(config.clone().route("github", "nowhere"));
    app.process(Role::Up, 0).signal("HUP");
    until(LONG, "the mistake is said", || {
        app.process(Role::Up, 0).log().contains("nowhere")
    });
    app.send(&Request::github("github", "reload-2", "push", "{}"))
        .accepted();
    // The command line reads the file, too: it must be right again to look at jobs.
    app.reconfigure(config);
    app.until_finished();

    assert_eq!(receiver.count(), 1);
}
