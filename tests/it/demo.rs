//! The whole story in one command.

use posthaste_tests::{Command, cases};

#[test]
fn the_demo_tells_every_step_plainly_when_piped_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");

    let finished = Command::new(folder.path(), &["demo"]).run().ok();

    for step in [
        "accepted",
        "delivered byte for byte",
        "duplicate",
        "refused",
        "attempt 3: 200",
        "dead-lettered",
        "breaker opened",
        "parked",
        "replayed",
    ] {
        assert!(
            finished.stdout.contains(step),
            "{step:?} is not in {}",
            finished.stdout
        );
    }
    assert!(
        !finished.stdout.contains('\u{1b}'),
        "colours in a pipe: {:?}",
        finished.stdout
    );
    assert_eq!(
        std::fs::read_dir(folder.path())
            .expect("the folder is there")
            .count(),
        0
    );
}

#[test]
fn the_demo_takes_any_real_payload() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let own = folder.path().join("own.json");
    std::fs::write(&own, "{ \"ref\": \"refs/heads/gr\u{fc}n\",\r\n \"n\": 1e2 }\n")
        .expect("it can be written");
    let largest = cases::payloads("github")
        .into_iter()
        .max_by_key(|case| case.body.len())
        .map(|case| case.path);

    for file in [Some(own), largest].into_iter().flatten() {
        let size = file.metadata().expect("it is there").len();
        let finished = Command::new(folder.path(), &["demo", "--payload", &file.to_string_lossy()])
            .run()
            .ok();
        assert!(
            finished.stdout.contains(&format!("{size} bytes")),
            "{file:?}: {}",
            finished.stdout
        );
    }
}
