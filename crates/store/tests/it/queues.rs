use std::time::Duration;

use futures::future::join_all;
use posthaste_jobs::{DeadReason, Ending, Queue};

use crate::on_both;
use crate::place::{Place, accept_one, run, start};

on_both!(
    the_epoch_of_a_queue_is_kept,
    a_pause_is_kept_until_it_is_ended,
    pausing_twice_does_not_change_since_when,
    of_many_who_ask_to_sweep_one_may_until_the_time_is_over,
    a_queue_says_what_waits_in_it_and_for_how_long,
);

async fn the_epoch_of_a_queue_is_kept(place: &Place) {
    let ledger = place.open().await;
    ledger.set_paused(Queue::Webhooks, true).await.unwrap();
    assert_eq!(ledger.epoch(Queue::Webhooks).await.unwrap(), None);

    ledger.set_epoch(Queue::Webhooks, "one").await.unwrap();
    ledger.set_epoch(Queue::Webhooks, "two").await.unwrap();

    let again = place.open().await;
    assert_eq!(
        again.epoch(Queue::Webhooks).await.unwrap().as_deref(),
        Some("two")
    );
    assert!(again.is_paused(Queue::Webhooks).await.unwrap());
}

async fn a_pause_is_kept_until_it_is_ended(place: &Place) {
    let ledger = place.open().await;
    assert!(!ledger.is_paused(Queue::Webhooks).await.unwrap());
    assert!(!ledger.set_paused(Queue::Webhooks, false).await.unwrap());

    assert!(ledger.set_paused(Queue::Webhooks, true).await.unwrap());
    assert!(place.open().await.is_paused(Queue::Webhooks).await.unwrap());

    assert!(ledger.set_paused(Queue::Webhooks, false).await.unwrap());
    assert!(!place.open().await.is_paused(Queue::Webhooks).await.unwrap());
}

async fn pausing_twice_does_not_change_since_when(place: &Place) {
    let ledger = place.open().await;
    ledger.set_paused(Queue::Webhooks, true).await.unwrap();
    place.execute("update queues set paused_at = 1").await;

    assert!(!ledger.set_paused(Queue::Webhooks, true).await.unwrap());

    let standing = ledger.standing(Queue::Webhooks).await.unwrap();
    assert_eq!(standing.paused_at.unwrap().as_millis(), 1);
}

async fn of_many_who_ask_to_sweep_one_may_until_the_time_is_over(place: &Place) {
    let ledgers = [place.open().await, place.open().await];
    let every = Duration::from_secs(300);
    let ask = || async {
        let asked = (0..20).map(|n| ledgers[n % 2].take_sweep(Queue::Webhooks, every));
        let taken = join_all(asked).await;
        taken.into_iter().filter(|taken| *taken.as_ref().unwrap()).count()
    };

    assert_eq!(ask().await, 1);
    place
        .execute("update queues set swept_at = swept_at - 290000")
        .await;
    assert_eq!(ask().await, 0);
    place
        .execute("update queues set swept_at = swept_at - 10000")
        .await;
    assert_eq!(ask().await, 1);
}

async fn a_queue_says_what_waits_in_it_and_for_how_long(place: &Place) {
    let ledger = place.open().await;
    assert_eq!(
        ledger.standing(Queue::Webhooks).await.unwrap().oldest_due_ms,
        None
    );
    for _ in 0..2 {
        accept_one(&ledger).await;
    }
    let long = accept_one(&ledger).await;
    run(
        &ledger,
        long,
        Ending::Retrying {
            wait: Duration::from_secs(600),
        },
    )
    .await;
    let dead = accept_one(&ledger).await;
    run(&ledger, dead, Ending::Dead(DeadReason::Permanent)).await;
    let running = accept_one(&ledger).await;
    start(&ledger, running).await;
    let done = accept_one(&ledger).await;
    run(&ledger, done, Ending::Succeeded).await;
    place
        .execute("update jobs set run_at = run_at - 60000 where state in ('queued', 'running', 'dead')")
        .await;

    let standing = ledger.standing(Queue::Webhooks).await.unwrap();

    let jobs: Vec<_> = standing.jobs.into_iter().collect();
    assert_eq!(
        jobs,
        [("dead", 1), ("queued", 2), ("retrying", 1), ("running", 1)]
    );
    let oldest = standing.oldest_due_ms.unwrap();
    assert!((60_000..120_000).contains(&oldest), "{oldest}");
}
