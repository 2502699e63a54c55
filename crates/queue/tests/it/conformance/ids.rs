//! Where an id is, and when it comes out.

use std::time::Duration;

use posthaste_queue::{Ack, Depth};
use tokio::time::{Instant, sleep};

use crate::support::*;

pub(super) async fn an_id_is_handed_out_once_however_often_it_is_pushed(place: Place) {
    let queue = place.open(quick());
    let jobs = ids(2);

    queue.push(&due(&[jobs[0], jobs[1], jobs[0]])).await.unwrap();
    queue.push(&due(&jobs)).await.unwrap();
    queue.push(&due_in(&jobs, NEVER)).await.unwrap();

    assert_eq!(
        queue.depth().await.unwrap(),
        Depth {
            ready: 2,
            ..Depth::default()
        }
    );
    assert_eq!(queue.fetch(10).await.unwrap(), jobs);
    assert_eq!(queue.fetch(10).await.unwrap(), []);
}

pub(super) async fn pushing_what_is_scheduled_does_not_bring_it_forward(place: Place) {
    let queue = place.open(quick());
    let jobs = ids(1);
    queue.push(&due_in(&jobs, NEVER)).await.unwrap();

    queue.push(&due(&jobs)).await.unwrap();

    assert_eq!(
        queue.depth().await.unwrap(),
        Depth {
            scheduled: 1,
            ..Depth::default()
        }
    );
    assert_eq!(queue.fetch(1).await.unwrap(), []);
}

pub(super) async fn a_push_names_what_is_leased_and_nothing_else(place: Place) {
    let queue = place.open(quick());
    let jobs = ids(4);
    let [leased, ready, scheduled, absent] = [jobs[0], jobs[1], jobs[2], jobs[3]];
    queue.push(&due(&[leased, ready])).await.unwrap();
    queue.push(&due_in(&[scheduled], NEVER)).await.unwrap();
    assert_eq!(queue.fetch(1).await.unwrap(), [leased]);

    assert_eq!(
        queue
            .push(&due(&[ready, scheduled, leased, absent]))
            .await
            .unwrap(),
        [leased]
    );

    queue.acknowledge(&[(leased, Ack::Done)]).await.unwrap();
    assert_eq!(queue.push(&due(&[leased])).await.unwrap(), []);
}

pub(super) async fn pushing_what_is_leased_does_not_hand_it_out_again(place: Place) {
    let queue = place.open(quick());
    let jobs = ids(1);
    queue.push(&due(&jobs)).await.unwrap();
    queue.fetch(1).await.unwrap();

    queue.push(&due(&jobs)).await.unwrap();
    queue.push(&due_in(&jobs, NEVER)).await.unwrap();

    assert_eq!(
        queue.depth().await.unwrap(),
        Depth {
            leased: 1,
            ..Depth::default()
        }
    );
    assert_eq!(queue.fetch(1).await.unwrap(), []);
}

pub(super) async fn ids_come_out_in_the_order_in_which_they_went_in(place: Place) {
    let queue = place.open(quick());
    let mut jobs = ids(1_201);
    jobs.reverse();
    queue.push(&due(&jobs[..1_101])).await.unwrap();
    queue.push(&due(&jobs[1_101..])).await.unwrap();

    let mut fetched = Vec::new();
    while fetched.len() < jobs.len() {
        fetched.extend(queue.fetch(97).await.unwrap());
    }

    assert!(fetched == jobs);
}

pub(super) async fn a_delayed_id_comes_at_its_time_and_not_before(place: Place) {
    let queue = place.open(quick());
    let keeper = Running::keeper(&queue);
    let jobs = ids(1);
    let begun = Instant::now();

    queue
        .push(&due_in(&jobs, Duration::from_millis(400)))
        .await
        .unwrap();
    let came = until_fetched(&queue, jobs[0]).await - begun;

    assert!(came >= Duration::from_millis(399), "came after {came:?}");
    keeper.stop().await;
}

pub(super) async fn delayed_ids_come_in_the_order_in_which_they_are_due(place: Place) {
    let queue = place.open(quick());
    let jobs = ids(2);
    let wait = Duration::from_millis;
    queue
        .push(&[due_in(&jobs[..1], wait(60)), due_in(&jobs[1..], wait(30))].concat())
        .await
        .unwrap();
    sleep(wait(80)).await;
    let keeper = Running::keeper(&queue);

    until("both are ready", || async {
        queue.depth().await.unwrap().ready == 2
    })
    .await;

    assert_eq!(queue.fetch(2).await.unwrap(), [jobs[1], jobs[0]]);
    keeper.stop().await;
}

pub(super) async fn what_is_done_is_forgotten_and_can_be_pushed_anew(place: Place) {
    let queue = place.open(quick());
    let jobs = ids(2);
    queue.push(&due(&jobs)).await.unwrap();
    queue.fetch(2).await.unwrap();

    queue.acknowledge(&[(jobs[0], Ack::Done)]).await.unwrap();
    assert_eq!(
        queue.depth().await.unwrap(),
        Depth {
            leased: 1,
            ..Depth::default()
        }
    );

    queue.push(&due(&jobs)).await.unwrap();
    assert_eq!(queue.fetch(2).await.unwrap(), [jobs[0]]);
}

pub(super) async fn what_is_to_come_again_comes_after_its_wait_and_not_before(place: Place) {
    let queue = place.open(quick());
    let keeper = Running::keeper(&queue);
    let jobs = ids(1);
    queue.push(&due(&jobs)).await.unwrap();
    queue.fetch(1).await.unwrap();
    let begun = Instant::now();

    queue
        .acknowledge(&[(jobs[0], Ack::Again(Duration::from_millis(400)))])
        .await
        .unwrap();
    assert_eq!(
        queue.depth().await.unwrap(),
        Depth {
            scheduled: 1,
            ..Depth::default()
        }
    );
    let came = until_fetched(&queue, jobs[0]).await - begun;

    assert!(came >= Duration::from_millis(399), "came after {came:?}");
    keeper.stop().await;
}

pub(super) async fn what_is_to_come_again_at_once_comes_at_once(place: Place) {
    let queue = place.open(quick());
    let jobs = ids(1);
    queue.push(&due(&jobs)).await.unwrap();
    queue.fetch(1).await.unwrap();

    queue
        .acknowledge(&[(jobs[0], Ack::Again(Duration::ZERO))])
        .await
        .unwrap();

    assert_eq!(queue.fetch(1).await.unwrap(), jobs);
}

pub(super) async fn a_lease_that_runs_out_comes_back_before_all_others(place: Place) {
    let queue = place.open(without_renewal());
    let jobs = ids(4);
    queue.push(&due(&jobs[..3])).await.unwrap();
    queue.fetch(3).await.unwrap();
    queue.push(&due(&jobs[3..])).await.unwrap();
    assert_eq!(queue.depth().await.unwrap().leased, 3);

    let keeper = Running::keeper(&queue);
    until("they are back", || async {
        queue.depth().await.unwrap().ready == 4
    })
    .await;

    assert_eq!(queue.fetch(4).await.unwrap(), jobs);
    keeper.stop().await;
}

pub(super) async fn a_lease_that_is_renewed_does_not_come_back(place: Place) {
    let queue = place.open(quick());
    let keeper = Running::keeper(&queue);
    let jobs = ids(1);
    queue.push(&due(&jobs)).await.unwrap();
    queue.fetch(1).await.unwrap();

    let give_up = Instant::now() + 3 * quick().lease;
    while Instant::now() < give_up {
        assert_eq!(
            queue.depth().await.unwrap(),
            Depth {
                leased: 1,
                ..Depth::default()
            }
        );
        sleep(Duration::from_millis(20)).await;
    }
    queue.acknowledge(&[(jobs[0], Ack::Done)]).await.unwrap();

    assert_eq!(queue.depth().await.unwrap(), Depth::default());
    keeper.stop().await;
}

pub(super) async fn an_acknowledgement_of_what_was_never_pushed_makes_nothing_ready(place: Place) {
    let queue = place.open(quick());
    let jobs = ids(2);

    queue
        .acknowledge(&[(jobs[0], Ack::Done), (jobs[1], Ack::Again(NEVER))])
        .await
        .unwrap();

    // What is unfinished is kept all the same: the queue may have lost its memory of it.
    assert_eq!(
        queue.depth().await.unwrap(),
        Depth {
            scheduled: 1,
            ..Depth::default()
        }
    );
}

pub(super) async fn nothing_to_do_is_no_error(place: Place) {
    let queue = place.open(quick());

    queue.push(&[]).await.unwrap();
    queue.acknowledge(&[]).await.unwrap();
    queue.probe().await.unwrap();

    assert_eq!(queue.fetch(10).await.unwrap(), []);
    assert_eq!(queue.epoch().await.unwrap(), queue.epoch().await.unwrap());
    assert_eq!(queue.depth().await.unwrap(), Depth::default());
}
