//! What the queue finds out about its Redis before and while it uses it.

use crate::support::*;
use posthaste_queue::{AppendOnly, Config, Queue, QueueError, Timing};

/// Every name that a queue has in Redis.
const NAMES: [&str; 11] = [
    "active",
    "active:high",
    "active:retry",
    "active:low",
    "scheduled",
    "inflight",
    "grants",
    "sequence",
    "paused",
    "epoch",
    "fetched",
];

fn open(url: String) -> Queue {
    Queue::open_as(&Config { url }, "test", Timing::default()).unwrap()
}

/// The error as an operator sees it, with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let source = error
        .source()
        .map(|source| format!(": {}", chain(source)))
        .unwrap_or_default();
    format!("{error}{source}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_somebody_else_uses_is_told_and_nothing_is_overwritten() {
    let server = Server::start().await;
    for name in NAMES {
        let queue = open(server.url());
        let key = format!("{{test}}:{name}");
        server.ask("RPUSH", &[&key, "theirs"]).await.unwrap();

        let error = queue.push(&due(&ids(3))).await.unwrap_err();

        assert!(matches!(error, QueueError::Foreign { .. }), "{name}: {error}");
        assert!(error.to_string().contains(&key), "{error}");
        assert!(error.to_string().contains("a list"), "{error}");
        for again in [
            queue.fetch(1).await.err(),
            queue.epoch().await.err(),
            queue.set_paused(true).await.err(),
            queue.probe().await.err(),
        ] {
            let again = again.expect(name).to_string();
            assert!(again.contains(&key), "{again}");
        }
        let keys: Vec<String> = redis::from_redis_value(server.ask("KEYS", &["*"]).await.unwrap()).unwrap();
        assert_eq!(keys, std::slice::from_ref(&key));

        server.ask("DEL", &[&key]).await.unwrap();
        until("the queue goes on by itself", || async {
            queue.push(&due(&ids(1))).await.is_ok()
        })
        .await;
        server.ask("FLUSHALL", &[]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_is_wrong_or_missing_is_told_until_it_is_right() {
    let server = Server::start().await;
    let with = |login: &str| open(server.url().replace("://", &format!("://{login}")));
    server
        .ask("CONFIG", &["SET", "requirepass", "right"])
        .await
        .unwrap();

    for login in ["", ":WR0NG@", "nobody:WR0NG@"] {
        let error = with(login).push(&due(&ids(1))).await.unwrap_err();

        assert!(matches!(error, QueueError::Login(_)), "{login}: {error:?}");
        assert!(error.to_string().contains("queue.url"), "{error}");
        assert!(!chain(&error).contains("WR0NG"), "{}", chain(&error));
    }
    with(":right@").push(&due(&ids(1))).await.unwrap();

    let queue = with(":later@");
    assert!(queue.probe().await.is_err());
    let mended = redis::Client::open(server.url().replace("://", "://:right@")).unwrap();
    let mut beside = mended.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("CONFIG")
        .arg(&["SET", "requirepass", "later"])
        .query_async(&mut beside)
        .await
        .unwrap();
    until("the queue goes on by itself", || async {
        queue.probe().await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_not_there_is_named() {
    let server = Server::start().await;

    let error = open(format!("{}/99", server.url()))
        .push(&due(&ids(1)))
        .await
        .unwrap_err();

    assert!(
        matches!(error, QueueError::NoDatabase { number: 99, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("database 99"), "{error}");
    open(format!("{}/15", server.url())).probe().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_evicts_is_told_until_it_is_mended_and_the_queue_works_all_the_same() {
    let server = Server::start().await;
    let policy = async |policy| {
        server
            .ask("CONFIG", &["SET", "maxmemory-policy", policy])
            .await
            .unwrap();
    };
    policy("allkeys-lru").await;
    let queue = open(server.url());

    queue.push(&due(&ids(1))).await.unwrap();
    let found = queue.probe().await.unwrap().server.unwrap();

    assert!(found.evicts());
    assert_eq!(found.policy, "allkeys-lru");
    policy("noeviction").await;
    assert!(!queue.probe().await.unwrap().server.unwrap().evicts());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_and_how_it_keeps_its_memory_are_read() {
    let server = Server::start().await;

    let plain = open(server.url()).probe().await.unwrap().server.unwrap();
    server.ask("CONFIG", &["SET", "appendonly", "yes"]).await.unwrap();
    server
        .ask("CONFIG", &["SET", "appendfsync", "always"])
        .await
        .unwrap();
    let kept = open(server.url()).probe().await.unwrap().server.unwrap();

    assert!(
        ["Redis ", "Valkey "]
            .iter()
            .any(|name| plain.server.starts_with(name)),
        "{plain}"
    );
    assert_eq!(plain.append_only, AppendOnly::No);
    assert_eq!(plain.policy, "noeviction");
    assert_eq!(kept.append_only, AppendOnly::Yes(Some("always".to_owned())));
}

/// What lets a server answer `PING`, and take no write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_answers_and_takes_no_write_fails_a_probe() {
    let wedges: [(&str, &[&str], &str, &[&str]); 4] = [
        ("CLIENT", &["PAUSE", "600000", "WRITE"], "CLIENT", &["UNPAUSE"]),
        ("REPLICAOF", &["127.0.0.1", "1"], "REPLICAOF", &["NO", "ONE"]),
        (
            "CONFIG",
            &["SET", "maxmemory", "1"],
            "CONFIG",
            &["SET", "maxmemory", "0"],
        ),
        (
            "CONFIG",
            &["SET", "min-replicas-to-write", "1"],
            "CONFIG",
            &["SET", "min-replicas-to-write", "0"],
        ),
    ];
    for (command, args, undo, undo_args) in wedges {
        let server = Server::start().await;
        let queue = open(server.url());
        queue.probe().await.unwrap();

        server.ask(command, args).await.unwrap();
        server.ask("PING", &[]).await.unwrap();

        assert!(queue.probe().await.is_err(), "{command} {args:?}");
        assert!(queue.probe().await.is_err(), "{command} {args:?}");
        server.ask(undo, undo_args).await.unwrap();
        until("it takes writes again", || async { queue.probe().await.is_ok() }).await;
    }
}
