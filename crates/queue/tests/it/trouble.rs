//! What the engine on Redis does when Redis, its network or its other clients misbehave.

use std::time::Duration;

use crate::support::*;
use posthaste_queue::{Ack, Config, Depth, Queue, QueueError, Timing};
use tokio::time::{Instant, sleep};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flushall_changes_the_epoch_and_the_worker_goes_on() {
    let server = Server::start().await;
    let queue = Place::on(&server).open(quick());
    let seen = Seen::default();
    let mut worker = Running::worker(&queue, 10, 10, noting(&seen));
    let before = queue.epoch().await.unwrap();
    queue.push(&due_in(&ids(1), NEVER)).await.unwrap();
    assert_eq!(queue.epoch().await.unwrap(), before);

    server.ask("FLUSHALL", &[]).await.unwrap();

    let after = ids(3);
    queue.push(&due(&after)).await.unwrap();
    assert_ne!(queue.epoch().await.unwrap(), before);
    seen.all(&after).await;
    until_empty(&queue).await;
    assert!(worker.is_working());
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_during_a_pause_arrive_after_it() {
    let server = Server::start().await;
    let queue = Place::on(&server).open(Timing {
        look: NEVER,
        ..Timing::default()
    });
    let (jobs, seen, gate) = (ids(8), Seen::default(), Gate::default());
    queue.push(&due(&jobs)).await.unwrap();
    let mut worker = Running::worker(&queue, 4, 4, gated(&seen, &gate));
    until("four run", || async { seen.count() == 4 }).await;

    server.ask("CLIENT", &["PAUSE", "4000", "ALL"]).await.unwrap();
    gate.open();

    seen.all(&jobs).await;
    until_empty(&queue).await;
    seen.assert_each_once(&jobs);
    assert!(worker.is_working());
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_arrive_although_every_connection_is_killed() {
    let server = Server::start().await;
    let queue = Place::on(&server).open(Timing {
        look: NEVER,
        ..Timing::default()
    });
    let (jobs, seen) = (ids(3_000), Seen::default());
    let mut worker = Running::worker(&queue, 20, 10, {
        let seen = seen.clone();
        move |job| {
            seen.note(job);
            async {
                sleep(Duration::from_millis(2)).await;
                Ok(Ack::Done)
            }
        }
    });
    queue.push(&due(&jobs)).await.unwrap();

    while seen.count() < jobs.len() {
        let _ = server
            .ask("CLIENT", &["KILL", "TYPE", "normal", "SKIPME", "yes"])
            .await;
        let _ = server.ask("CLIENT", &["KILL", "TYPE", "pubsub"]).await;
        sleep(Duration::from_millis(30)).await;
    }

    // A batch whose answer was lost comes back when its lease runs out.
    until_empty(&queue).await;
    seen.assert_each_once(&jobs);
    assert!(worker.is_working());
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_9_and_a_restart_without_memory_the_worker_goes_on() {
    let server = Server::start().await;
    let queue = Place::on(&server).open(Timing {
        look: NEVER,
        ..Timing::default()
    });
    let (before, seen, gate) = (ids(4), Seen::default(), Gate::default());
    queue.push(&due(&before)).await.unwrap();
    let epoch = queue.epoch().await.unwrap();
    let mut worker = Running::worker(&queue, 10, 10, gated(&seen, &gate));
    seen.all(&before).await;

    server.kill();
    gate.open();
    sleep(Duration::from_millis(300)).await;
    assert!(queue.push(&due(&ids(1))).await.is_err());
    server.launch().await;

    let after = ids(100);
    until("a push arrives", || async {
        queue.push(&due(&after)).await.is_ok()
    })
    .await;
    seen.all(&[before.clone(), after.clone()].concat()).await;
    until_empty(&queue).await;
    seen.assert_each_once(&before);
    seen.assert_each_once(&after);
    assert_ne!(queue.epoch().await.unwrap(), epoch);
    assert!(worker.is_working());
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_at_the_start_is_waited_for() {
    let server = Server::start().await;
    server.kill();
    let queue = Place::on(&server).open(Timing {
        look: NEVER,
        ..Timing::default()
    });
    let (jobs, seen) = (ids(1), Seen::default());
    let worker = Running::worker(&queue, 10, 10, noting(&seen));
    until("it is known to be away", || async {
        queue.probe().await.is_err()
    })
    .await;

    server.launch().await;

    until("a push arrives", || async {
        queue.push(&due(&jobs)).await.is_ok()
    })
    .await;
    seen.all(&jobs).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_costs_one_time_out_and_then_nothing() {
    let server = Server::start().await;
    let queue = Place::on(&server).open(quick());
    queue.probe().await.unwrap();
    server.ask("CLIENT", &["PAUSE", "6000", "ALL"]).await.unwrap();

    let begun = Instant::now();
    assert!(matches!(queue.probe().await, Err(QueueError::Timeout(_))));
    let first = begun.elapsed();
    for _ in 0..1_000 {
        assert!(matches!(
            tokio::join!(queue.probe(), queue.probe()),
            (_, Err(QueueError::Away { .. }))
        ));
        if begun.elapsed() > first + Duration::from_millis(40) {
            break;
        }
    }

    assert!(first < Duration::from_secs(3), "{first:?}");
    until("it answers again", || async { queue.probe().await.is_ok() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_arrive_when_a_demoted_server_is_promoted_again() {
    let server = Server::start().await;
    let queue = Place::on(&server).open(Timing {
        look: NEVER,
        ..Timing::default()
    });
    let (jobs, seen, gate) = (ids(4), Seen::default(), Gate::default());
    queue.push(&due(&jobs)).await.unwrap();
    let mut worker = Running::worker(&queue, 10, 10, gated(&seen, &gate));
    seen.all(&jobs).await;

    server.demote().await;
    gate.open();
    until("a write is refused", || async {
        queue.push(&due(&ids(1))).await.is_err()
    })
    .await;
    server.ask("REPLICAOF", &["NO", "ONE"]).await.unwrap();

    until_empty(&queue).await;
    seen.assert_each_once(&jobs);
    assert!(worker.is_working());
    worker.stop().await;
}

#[tokio::test]
async fn a_connection_to_a_demoted_server_is_not_kept() {
    let server = Server::start().await;
    let queue = Place::on(&server).open(quick());
    queue.push(&due(&ids(1))).await.unwrap();
    assert_eq!(connections_of_ours(&server).await, 1);

    server.demote().await;

    assert!(matches!(
        queue.push(&due(&ids(1))).await,
        Err(QueueError::Unavailable(_))
    ));
    until("it is closed", || async {
        connections_of_ours(&server).await == 0
    })
    .await;
}

/// Counts connections whose last command was a script: those of queues.
async fn connections_of_ours(server: &Server) -> usize {
    let list = server.ask("CLIENT", &["LIST", "TYPE", "normal"]).await.unwrap();
    let list: String = redis::from_redis_value(list).unwrap();
    list.lines().filter(|line| line.contains("cmd=eval")).count()
}

#[tokio::test]
async fn what_a_server_forgets_of_scripts_it_is_told_again() {
    let server = Server::start().await;
    let queue = Place::on(&server).open(quick());
    let jobs = ids(2);
    queue.push(&due(&jobs[..1])).await.unwrap();

    server.ask("SCRIPT", &["FLUSH"]).await.unwrap();

    queue.push(&due(&jobs[1..])).await.unwrap();
    assert_eq!(queue.fetch(2).await.unwrap(), jobs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_of_another_process_wakes_the_worker() {
    let place = Place::redis();
    let (mine, other) = (place.open(quick()), place.open(quick()));
    let seen = Seen::default();
    let worker = Running::worker(&mine, 10, 10, noting(&seen));

    for job in ids(5) {
        sleep(Duration::from_millis(100)).await;
        other.push(&due(&[job])).await.unwrap();
        until("the worker woke", || async { seen.times(job) == 1 }).await;
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_pause_holds_for_every_process_until_any_of_them_ends_it() {
    let place = Place::redis();
    let (mine, other) = (place.open(quick()), place.open(quick()));
    let jobs = ids(1);
    mine.push(&due(&jobs)).await.unwrap();

    mine.set_paused(true).await.unwrap();
    assert_eq!(other.fetch(1).await.unwrap(), []);

    other.set_paused(false).await.unwrap();
    assert_eq!(mine.fetch(1).await.unwrap(), jobs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_lost_its_lease_cannot_speak_for_the_one_that_has_it() {
    let place = Place::redis();
    let timing = Timing {
        renew: NEVER,
        ..quick()
    };
    let (stopped, other) = (
        place.open(timing),
        place.open(Timing {
            lease: NEVER,
            ..timing
        }),
    );
    let jobs = ids(3);
    stopped.push(&due(&jobs)).await.unwrap();
    assert_eq!(stopped.fetch(3).await.unwrap(), jobs);

    let keeper = Running::keeper(&other);
    until("the leases ran out", || async {
        other.depth().await.unwrap().ready == 3
    })
    .await;
    assert_eq!(other.fetch(2).await.unwrap(), jobs[..2]);
    let late = [
        (jobs[0], Ack::Done),
        (jobs[1], Ack::Again(Duration::ZERO)),
        (jobs[2], Ack::Done),
    ];
    stopped.acknowledge(&late).await.unwrap();

    assert_eq!(
        other.depth().await.unwrap(),
        Depth {
            ready: 1,
            leased: 2,
            ..Depth::default()
        }
    );
    keeper.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_whose_grants_were_evicted_come_back() {
    let place = Place::redis();
    let queue = place.open(Timing {
        lease: NEVER,
        ..quick()
    });
    let jobs = ids(2);
    queue.push(&due(&jobs)).await.unwrap();
    queue.fetch(1).await.unwrap();
    queue.fetch(1).await.unwrap();
    let (mut beside, prefix) = place.beside().await;

    let _: u64 = redis::cmd("DEL")
        .arg(format!("{prefix}:grants"))
        .query_async(&mut beside)
        .await
        .unwrap();
    let keeper = Running::keeper(&queue);

    until("they are back", || async {
        queue.depth().await.unwrap().ready == 2
    })
    .await;
    keeper.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_job_id_is_dropped_and_ends_no_worker() {
    let place = Place::redis();
    let queue = place.open(quick());
    let (mut beside, prefix) = place.beside().await;
    let (jobs, seen) = (ids(1), Seen::default());
    let lower_case = jobs[0].to_string().to_lowercase();
    for (score, member) in ["junk", &lower_case, ""].into_iter().enumerate() {
        let mut add = redis::cmd("ZADD");
        add.arg(format!("{prefix}:active")).arg(score).arg(member);
        let _: u64 = add.query_async(&mut beside).await.unwrap();
    }
    queue.push(&due(&jobs)).await.unwrap();

    let mut worker = Running::worker(&queue, 10, 10, noting(&seen));
    seen.all(&jobs).await;
    until_empty(&queue).await;

    assert!(worker.is_working());
    worker.stop().await;
}

#[tokio::test]
async fn a_key_that_somebody_else_makes_later_is_refused_and_left_as_it_is() {
    let place = Place::redis();
    let queue = place.open(quick());
    queue.probe().await.unwrap();
    let (mut beside, prefix) = place.beside().await;
    let key = format!("{prefix}:active");
    let _: u64 = redis::cmd("RPUSH")
        .arg(&key)
        .arg("theirs")
        .query_async(&mut beside)
        .await
        .unwrap();

    assert!(matches!(
        queue.push(&due(&ids(1))).await,
        Err(QueueError::Refused {
            operation: "push",
            ..
        })
    ));
    assert!(matches!(
        queue.fetch(1).await,
        Err(QueueError::Refused {
            operation: "fetch",
            ..
        })
    ));

    let left: Vec<String> = redis::cmd("LRANGE")
        .arg(&key)
        .arg(0)
        .arg(-1)
        .query_async(&mut beside)
        .await
        .unwrap();
    assert_eq!(left, ["theirs"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_refuses_pushes_and_lets_jobs_end() {
    let server = Server::start().await;
    let queue = Place::on(&server).open(quick());
    let jobs = ids(10);
    queue.push(&due(&jobs)).await.unwrap();

    server.ask("CONFIG", &["SET", "maxmemory", "1"]).await.unwrap();

    assert!(matches!(
        queue.push(&due(&ids(1))).await,
        Err(QueueError::Refused { .. })
    ));
    let fetched = queue.fetch(10).await.unwrap();
    assert_eq!(fetched, jobs);
    let acks: Vec<_> = fetched.iter().map(|job| (*job, Ack::Done)).collect();
    queue.acknowledge(&acks).await.unwrap();
    assert_eq!(queue.depth().await.unwrap(), Depth::default());
}

#[tokio::test]
async fn when_all_is_done_three_small_keys_are_left() {
    let place = Place::redis();
    let queue = place.open(quick());
    let (mut beside, prefix) = place.beside().await;
    let jobs = ids(1_000);
    queue.push(&due(&jobs)).await.unwrap();
    while queue.depth().await.unwrap().ready > 0 {
        let acks: Vec<_> = queue
            .fetch(300)
            .await
            .unwrap()
            .into_iter()
            .map(|job| (job, Ack::Done))
            .collect();
        queue.acknowledge(&acks).await.unwrap();
    }

    let mut left: Vec<String> = redis::cmd("KEYS")
        .arg(format!("{prefix}:*"))
        .query_async(&mut beside)
        .await
        .unwrap();
    left.sort();

    assert_eq!(
        left,
        ["epoch", "fetched", "sequence"].map(|key| format!("{prefix}:{key}"))
    );
}

#[tokio::test]
async fn an_error_never_shows_the_password() {
    let url = format!("redis://user:S3CRET@127.0.0.1:{}", free_port());
    let queue = Queue::open_as(&Config { url }, "test", quick()).unwrap();

    let error = queue.probe().await.unwrap_err();

    let chain = format!("{error} {error:?} {queue:?}");
    assert!(!chain.contains("S3CRET"), "{chain}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledgement_that_comes_during_a_fetch_is_not_forgotten_after_it() {
    let server = Server::start().await;
    let place = Place::on(&server);
    let queue = place.open(Timing {
        look: NEVER,
        ..Timing::default()
    });
    let (jobs, seen, gate) = (ids(1), Seen::default(), Gate::default());
    queue.push(&due(&jobs)).await.unwrap();
    let worker = Running::worker(&queue, 10, 10, gated(&seen, &gate));
    seen.all(&jobs).await;

    place.hold_up_a_fetch(&[]).await;
    gate.open();

    until_empty(&queue).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_fetch_brings_during_a_stop_is_given_back() {
    let server = Server::start().await;
    let place = Place::on(&server);
    let queue = place.open(Timing {
        lease: NEVER,
        look: NEVER,
        ..Timing::default()
    });
    let (first, late, seen) = (ids(1), ids(1), Seen::default());
    queue.push(&due(&first)).await.unwrap();
    let worker = Running::worker(&queue, 10, 10, noting(&seen));
    seen.all(&first).await;
    until_empty(&queue).await;

    place.hold_up_a_fetch(&late).await;
    worker.stop_worker().await;
    worker.stop().await;

    assert_eq!(seen.times(late[0]), 0);
    assert_eq!(queue.fetch(1).await.unwrap(), late);
}

/// Counts each job, and ends it when the gate is open.
fn gated(
    seen: &Seen,
    gate: &Gate,
) -> impl Fn(
    posthaste_jobs::JobId,
) -> futures::future::BoxFuture<'static, Result<Ack, apalis::prelude::BoxDynError>>
+ Send
+ Sync
+ 'static {
    let (seen, gate) = (seen.clone(), gate.clone());
    move |job| {
        seen.note(job);
        let gate = gate.clone();
        Box::pin(async move {
            gate.pass().await;
            Ok(Ack::Done)
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_left_among_the_ids_keeps_nobody_from_the_ids() {
    let place = Place::redis();
    let queue = place.open(quick());
    let (mut beside, prefix) = place.beside().await;
    let foreign: [&[u8]; 3] = [b"\xff\xfe", b"", b"no id"];
    for member in foreign {
        redis::cmd("ZADD")
            .arg(format!("{prefix}:active"))
            .arg(0)
            .arg(member)
            .exec_async(&mut beside)
            .await
            .unwrap();
    }
    let (jobs, seen) = (ids(3), Seen::default());
    queue.push(&due(&jobs)).await.unwrap();

    let worker = Running::worker(&queue, 10, 10, noting(&seen));

    seen.all(&jobs).await;
    until_empty(&queue).await;
    worker.stop().await;
}
