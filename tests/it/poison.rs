//! A job that takes its worker down with it.

use posthaste_tests::{Config, Endpoint, LONG, Receiver, Reply, Request, Role, Setup, TestApp, until};

const NEIGHBOURS: usize = 5;
const ONE_WORKER: Setup = Setup::Scaled {
    ingress: 1,
    workers: 1,
};

/// BR-08: an attempt was counted only after it had failed, so a job that killed its process was run for ever,
/// and its neighbours with it.
#[test]
fn a_job_that_kills_three_workers_is_a_dead_letter_and_its_neighbours_spend_nothing() {
    let receiver = Receiver::start();
    receiver.reply("/poison", [Reply::Hang]);
    receiver.reply("/hooks", [Reply::Hang]);
    let mut app = TestApp::on(ONE_WORKER, config(&receiver)).start();
    let neighbours: Vec<String> = (0..NEIGHBOURS)
        .map(|number| send(&app, &format!("neighbour-{number}"), "issues"))
        .collect();
    let poison = send(&app, "poison", "push");

    // Twice everything that runs goes down with it; the third time there is nothing beside it.
    for death in 1..=2 {
        receiver.until_received(death * (NEIGHBOURS + 1));
        kill_and_start(&mut app);
    }
    receiver.reply("/hooks", [Reply::Status(200)]);
    until(LONG, "the poison has run a third time", || {
        receiver.received_on("/poison").len() == 3
    });
    kill_and_start(&mut app);
    let dead = app.until_state(&poison, "dead");
    for neighbour in &neighbours {
        let shown = app.until_state(neighbour, "succeeded");
        assert_eq!(TestApp::attempts(&shown).len(), 1, "{shown:#}");
    }

    assert_eq!(dead["dead_reason"], "crashed", "{dead:#}");
    assert_eq!(dead["attempts_spent"], 0, "{dead:#}");
    assert!(TestApp::attempts(&dead).is_empty(), "{dead:#}");
    assert!(
        dead["last_error"]
            .as_str()
            .is_some_and(|error| error.contains("was lost")),
        "{dead:#}"
    );
    assert_eq!(receiver.received_on("/poison").len(), 3, "it ran a fourth time");
    assert_eq!(receiver.received_on("/hooks").len(), 3 * NEIGHBOURS);
}

fn config(receiver: &Receiver) -> Config {
    let endpoint = |name: &str, path: &str| Endpoint::new(name, &receiver.url(path)).timeout("60s");
    Config::new()
        .github("github")
        .endpoint(endpoint("poison", "/poison"))
        .endpoint(endpoint("hooks", "/hooks"))
        .route_of("github", "push", "poison")
        .route_of("github", "issues", "hooks")
}

fn send(app: &TestApp, id: &str, event_type: &str) -> String {
    let event = app
        .send(&Request::github("github", id, event_type, "{}"))
        .accepted();
    app.job_of(&event)
}

fn kill_and_start(app: &mut TestApp) {
    let worker = app.process(Role::Workers, 0);
    worker.kill_9();
    worker.start();
}
