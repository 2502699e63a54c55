//! A broken configuration is said before anything starts: file, line, key, what was expected.

use std::path::Path;
use std::process;

use posthaste_tests::{Command, Config, Finished, Port, Role, Setup, TestApp, posthaste};

const ENDPOINT: &str = "[[endpoints]]\nname = \"orders\"\nurl = \"http://127.0.0.1:9/hooks\"\n";

#[test]
fn each_mistake_is_named_with_its_file_line_and_key_and_exits_with_2() {
    let mistakes = [
        ("not TOML", "[http]\nlisten = \n", 2, "listen"),
        (
            "an unknown key",
            "[http]\nlisten = \"127.0.0.1:0\"\nmax_bodi = \"1MiB\"\n",
            3,
            "max_bodi",
        ),
        (
            "an unknown section",
            "\n[htpp]\nlisten = \"127.0.0.1:0\"\n",
            2,
            "htpp",
        ),
        (
            "a wrong type",
            "[workers]\nconcurrency = \"many\"\n",
            2,
            "concurrency",
        ),
        (
            "no length of time",
            "[http]\nread_timeout = \"soon\"\n",
            2,
            "read_timeout",
        ),
        ("no size", "[http]\n\nmax_body = \"large\"\n", 3, "max_body"),
        ("no address", "[http]\nlisten = \"everywhere\"\n", 2, "listen"),
        (
            "a source without a scheme",
            "[[sources]]\nname = \"github\"\nsecrets = [\"x\"]\n",
            1,
            "scheme",
        ),
        (
            "an unknown scheme",
            "[[sources]]\nname = \"a\"\nscheme = \"githup\"\nsecrets = [\"x\"]\n",
            3,
            "scheme",
        ),
        (
            "a source without secrets",
            "[[sources]]\nname = \"a\"\nscheme = \"github\"\n",
            1,
            "secrets",
        ),
        (
            "an unset variable",
            "[[sources]]\nname = \"a\"\nscheme = \"github\"\nsecrets = [\"env:POSTHASTE_NOT_SET\"]\n",
            4,
            "POSTHASTE_NOT_SET",
        ),
        (
            "two sources of one name",
            "[[sources]]\nname = \"twin\"\nscheme = \"none\"\n[[sources]]\nname = \"twin\"\nscheme = \"none\"\n",
            5,
            "twin",
        ),
        (
            "an endpoint that is no URL",
            "[[endpoints]]\nname = \"a\"\nurl = \"nowhere\"\n",
            3,
            "url",
        ),
        (
            "a retry that never tries",
            "[[endpoints]]\nname = \"a\"\nurl = \"http://127.0.0.1:9/\"\nretry = { max_attempts = 0 }\n",
            4,
            "max_attempts",
        ),
        (
            "a route to nowhere",
            "[[sources]]\nname = \"a\"\nscheme = \"none\"\n[[routes]]\nsource = \"a\"\nendpoint = \"odrers\"\n",
            6,
            "odrers",
        ),
        (
            "a route from nowhere",
            &format!("{ENDPOINT}[[routes]]\nsource = \"b\"\nendpoint = \"orders\"\n"),
            5,
            "source",
        ),
        (
            "a ledger of an unknown kind",
            "[ledger]\nurl = \"mysql://host/db\"\n",
            2,
            "url",
        ),
        (
            "a queue of an unknown kind",
            "[queue]\nurl = \"amqp://host\"\n",
            2,
            "url",
        ),
    ];
    for (name, text, line, key) in mistakes {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for command in ["up", "check"] {
            let finished = run_on(folder.path(), text, &[command]);

            assert_eq!(finished.status, Some(2), "{name}: {finished:?}");
            let place = format!("posthaste.toml:{line}");
            let spelt_out = format!("line {line}");
            let said = &finished.stderr;
            assert!(
                said.contains(&place) || said.contains(&spelt_out),
                "{name}: line {line} is not in {said}"
            );
            assert!(
                said.contains("posthaste.toml"),
                "{name}: the file is not in {said}"
            );
            assert!(said.contains(key), "{name}: {key} is not in {said}");
            assert_eq!(finished.stdout, "", "{name}");
        }
        let made = std::fs::read_dir(folder.path())
            .expect("the folder is there")
            .count();
        assert_eq!(
            made, 1,
            "{name}: something was started before the mistake was said"
        );
    }
}

#[test]
fn an_unknown_key_is_told_with_the_nearest_known_one() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");

    let key = run_on(folder.path(), "[http]\nmax_bodi = \"1MiB\"\n", &["check"]);
    let route = run_on(
        folder.path(),
        &format!("{ENDPOINT}tiemout = \"1s\"\n"),
        &["check"],
    );

    assert!(key.stderr.contains("max_body"), "{key:?}");
    assert!(route.stderr.contains("timeout"), "{route:?}");
}

#[test]
fn a_file_that_is_not_there_and_a_wrong_command_line_exit_with_2() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");

    for args in [
        vec!["check", "--config", "absent.toml"],
        vec!["up", "--config", "absent.toml"],
        vec!["jobs", "lsit"],
        vec!["frobnicate"],
        vec!["jobs", "list", "--limit", "many"],
    ] {
        let finished = Command::new(folder.path(), &args).run();
        assert_eq!(finished.status, Some(2), "{args:?}: {finished:?}");
        assert!(!finished.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_setting_from_the_environment_overrides_the_file_and_a_broken_one_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    write(folder.path(), "[ledger]\nurl = \"sqlite:of-the-file.db\"\n");

    Command::new(folder.path(), &["migrate"])
        .env("POSTHASTE__LEDGER__URL", "sqlite:of-the-environment.db")
        .run()
        .ok();
    let broken = Command::new(folder.path(), &["check"])
        .env("POSTHASTE__WORKERS__CONCURRENCY", "many")
        .run();

    assert!(folder.path().join("of-the-environment.db").exists());
    assert!(!folder.path().join("of-the-file.db").exists());
    assert_eq!(broken.status, Some(2));
    assert!(
        broken.stderr.contains("POSTHASTE__WORKERS__CONCURRENCY"),
        "{broken:?}"
    );
}

#[test]
fn the_default_configuration_is_one_that_passes_its_own_check() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let default = Command::new(folder.path(), &["config", "default"]).run().ok();

    let checked = run_on(folder.path(), &default.stdout, &["check"]);

    assert!(default.stdout.contains("[http]"), "{default:?}");
    assert_eq!(checked.status, Some(0), "{checked:?}");
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_failure() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    write(folder.path(), "");

    for args in [
        &["config", "default"][..],
        &["jobs", "list"],
        &["events", "list", "--json"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        drop(reader);
        let output = process::Command::new(posthaste())
            .args(args)
            .current_dir(folder.path())
            .stdout(writer)
            .stderr(process::Stdio::piped())
            .spawn()
            .and_then(process::Child::wait_with_output)
            .expect("posthaste can be run");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr, "", "{args:?}");
        assert_ne!(output.status.code(), Some(101), "{args:?} panicked");
    }
}

#[test]
fn a_port_that_is_taken_is_said_and_exits_with_1() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let port = Port::free();
    let _listener = std::net::TcpListener::bind(port.address()).expect("a held port is free");

    let finished = run_on(
        folder.path(),
        &format!("[http]\nlisten = \"{}\"\n", port.address()),
        &["up"],
    );

    assert_eq!(finished.status, Some(1), "{finished:?}");
    assert!(
        finished.stderr.contains(&port.address().to_string()),
        "{finished:?}"
    );
}

#[test]
fn an_ingress_without_sources_starts_and_warns() {
    let mut app = TestApp::on(Setup::Own, Config::new()).prepare();
    let up = app.process(Role::Up, 0);

    up.start();

    assert!(up.log().contains("no source is configured"), "{}", up.log());
}

#[test]
fn roles_that_need_a_shared_queue_refuse_the_one_in_the_process() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");

    for role in ["ingress", "workers"] {
        let finished = run_on(folder.path(), "[queue]\nurl = \"local:\"\n", &[role]);
        assert_eq!(finished.status, Some(2), "{role}: {finished:?}");
        assert!(finished.stderr.contains("queue"), "{role}: {finished:?}");
    }
}

fn run_on(folder: &Path, text: &str, args: &[&str]) -> Finished {
    write(folder, text);
    Command::new(folder, args).run()
}

fn write(folder: &Path, text: &str) {
    std::fs::write(folder.join("posthaste.toml"), text).expect("a configuration can be written");
}
