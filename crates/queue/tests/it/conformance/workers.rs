//! What a real apalis worker does on the queue.

use std::time::Duration;

use posthaste_queue::{Ack, Depth, Timing};
use tokio::time::sleep;

use crate::support::*;

pub(super) async fn an_acknowledgement_that_is_too_late_does_not_end_the_next_lease(place: Place) {
    let queue = place.open(without_renewal());
    let (jobs, marker) = (ids(1), ids(1));
    let (seen, first_may_end) = (Seen::default(), Gate::default());
    queue.push(&due(&jobs)).await.unwrap();
    let worker = Running::worker(&queue, 1, 10, {
        let (seen, first_may_end, marker) = (seen.clone(), first_may_end.clone(), marker[0]);
        move |job| {
            let (run, first_may_end) = (seen.note(job), first_may_end.clone());
            async move {
                match run {
                    _ if job == marker => return Ok(Ack::Again(NEVER)),
                    1 => first_may_end.pass().await,
                    _ => sleep(NEVER).await,
                }
                Ok(Ack::Done)
            }
        }
    });

    until("the second run begins", || async { seen.times(jobs[0]) >= 2 }).await;
    first_may_end.open();
    sleep(Duration::from_millis(20)).await;
    // Acknowledgements are delivered in order: when this one has arrived, so has the one before it.
    queue.push(&due(&marker)).await.unwrap();
    until("the marker has come round", || async {
        queue.depth().await.unwrap().scheduled == 1
    })
    .await;

    let depth = queue.depth().await.unwrap();
    assert_eq!(depth.ready + depth.leased, 1, "{depth:?}");
    drop(worker);
}

pub(super) async fn at_and_around_8000_due_at_once_all_run(place: Place) {
    for count in [7_999, 8_000, 8_001] {
        run_all_due_at_once(&place, count).await;
    }
}

pub(super) async fn twenty_thousand_due_at_once_all_run(place: Place) {
    run_all_due_at_once(&place, 20_000).await;
}

async fn run_all_due_at_once(place: &Place, count: usize) {
    let queue = place.open(quick());
    let (jobs, seen) = (ids(count), Seen::default());
    let wait = Duration::from_millis(50);
    queue.push(&due_in(&jobs, wait)).await.unwrap();
    sleep(wait).await;

    let worker = Running::worker(&queue, 200, 200, noting(&seen));
    seen.all(&jobs).await;
    until_empty(&queue).await;

    seen.assert_each_once(&jobs);
    worker.stop().await;
}

pub(super) async fn a_push_wakes_an_idle_worker(place: Place) {
    let queue = place.open(quick());
    let seen = Seen::default();
    let worker = Running::worker(&queue, 10, 10, noting(&seen));

    // Several times: the first may be what the worker finds when it starts.
    for job in ids(5) {
        sleep(Duration::from_millis(100)).await;
        queue.push(&due(&[job])).await.unwrap();
        until("the worker woke", || async { seen.times(job) == 1 }).await;
    }
    worker.stop().await;
}

pub(super) async fn a_due_time_wakes_an_idle_worker(place: Place) {
    let queue = place.open(quick());
    let seen = Seen::default();
    let worker = Running::worker(&queue, 10, 10, noting(&seen));

    for job in ids(3) {
        queue
            .push(&due_in(&[job], Duration::from_millis(150)))
            .await
            .unwrap();
        until("the worker woke", || async { seen.times(job) == 1 }).await;
    }
    worker.stop().await;
}

pub(super) async fn an_expired_lease_wakes_an_idle_worker(place: Place) {
    let queue = place.open(without_renewal());
    let (jobs, seen) = (ids(1), Seen::default());
    queue.push(&due(&jobs)).await.unwrap();
    queue.fetch(1).await.unwrap();

    let worker = Running::worker(&queue, 10, 10, noting(&seen));

    seen.all(&jobs).await;
    worker.stop().await;
}

pub(super) async fn a_worker_that_goes_idle_leaves_nothing_leased(place: Place) {
    let queue = place.open(quick());
    let worker = Running::worker(&queue, 10, 10, |_| async {
        sleep(Duration::from_millis(3)).await;
        Ok(Ack::Done)
    });

    for _ in 0..30 {
        queue.push(&due(&ids(7))).await.unwrap();
        until_empty(&queue).await;
    }
    worker.stop().await;
}

pub(super) async fn fifty_thousand_jobs_are_handled_once_each(place: Place) {
    let queue = place.open(Timing {
        look: NEVER,
        ..Timing::default()
    });
    let (jobs, seen) = (ids(50_000), Seen::default());
    queue.push(&due(&jobs)).await.unwrap();

    let mut worker = Running::worker(&queue, 250, 100, noting(&seen));
    seen.all(&jobs).await;
    until_empty(&queue).await;

    seen.assert_each_once(&jobs);
    assert!(worker.is_working());
    worker.stop().await;
}

pub(super) async fn a_stop_in_the_middle_gives_back_what_was_not_begun(place: Place) {
    let queue = place.open(quick());
    let (jobs, seen, gate) = (ids(100), Seen::default(), Gate::default());
    queue.push(&due(&jobs)).await.unwrap();
    let worker = Running::worker(&queue, 50, 4, {
        let (seen, gate) = (seen.clone(), gate.clone());
        move |job| {
            seen.note(job);
            let gate = gate.clone();
            async move {
                gate.pass().await;
                Ok(Ack::Done)
            }
        }
    });
    until("four jobs run", || async { seen.count() == 4 }).await;
    assert_eq!(
        queue.depth().await.unwrap(),
        Depth {
            ready: 50,
            leased: 50,
            ..Depth::default()
        }
    );

    worker.stop_worker().await;
    gate.open();
    worker.stop().await;

    assert_eq!(seen.count(), 4);
    assert_eq!(
        queue.depth().await.unwrap(),
        Depth {
            ready: 96,
            ..Depth::default()
        }
    );
    assert_eq!(queue.fetch(100).await.unwrap(), jobs[4..]);
}

pub(super) async fn a_stop_waits_for_more_handlers_than_a_batch_holds(place: Place) {
    let queue = place.open(quick());
    let (jobs, seen, gate) = (ids(300), Seen::default(), Gate::default());
    queue.push(&due(&jobs)).await.unwrap();
    let worker = Running::worker(&queue, 10, 300, {
        let (seen, gate) = (seen.clone(), gate.clone());
        move |job| {
            seen.note(job);
            let gate = gate.clone();
            async move {
                gate.pass().await;
                Ok(Ack::Done)
            }
        }
    });
    seen.all(&jobs).await;

    worker.stop_worker().await;
    gate.open();
    worker.stop().await;

    assert_eq!(queue.depth().await.unwrap(), Depth::default());
}

pub(super) async fn a_worker_that_is_cut_off_gives_back_what_it_had(place: Place) {
    // Long leases: what comes back does so because it was given back.
    let queue = place.open(Timing {
        lease: NEVER,
        ..quick()
    });
    let (jobs, seen) = (ids(20), Seen::default());
    queue.push(&due(&jobs)).await.unwrap();
    let mut worker = Running::worker(&queue, 10, 5, {
        let seen = seen.clone();
        move |job| {
            let first = seen.count() == 0;
            seen.note(job);
            async move {
                if !first {
                    sleep(NEVER).await;
                }
                Ok(Ack::Done)
            }
        }
    });
    until("one is done and five run", || async { seen.count() == 6 }).await;

    worker.cut_off_worker().await;

    until("all but the done one are back", || async {
        queue.depth().await.unwrap()
            == Depth {
                ready: 19,
                ..Depth::default()
            }
    })
    .await;
    worker.stop().await;
}

pub(super) async fn a_handler_that_panics_ends_no_worker_and_loses_no_id(place: Place) {
    let queue = place.open(quick());
    let (jobs, seen) = (ids(3), Seen::default());
    let mut worker = Running::worker(&queue, 10, 10, {
        let seen = seen.clone();
        move |job| {
            let run = seen.note(job);
            async move {
                assert!(run > 2, "a panic on purpose");
                Ok(Ack::Done)
            }
        }
    });

    queue.push(&due(&jobs)).await.unwrap();
    until("all came through at the third time", || async {
        jobs.iter().all(|job| seen.times(*job) == 3)
    })
    .await;
    until_empty(&queue).await;

    assert!(worker.is_working());
    worker.stop().await;
}

pub(super) async fn a_handler_that_fails_gets_its_id_again(place: Place) {
    let queue = place.open(quick());
    let (jobs, seen) = (ids(1), Seen::default());
    let mut worker = Running::worker(&queue, 10, 10, {
        let seen = seen.clone();
        move |job| {
            let run = seen.note(job);
            async move {
                if run == 1 {
                    Err("a failure on purpose".into())
                } else {
                    Ok(Ack::Done)
                }
            }
        }
    });

    queue.push(&due(&jobs)).await.unwrap();
    until("it came again", || async { seen.times(jobs[0]) == 2 }).await;
    until_empty(&queue).await;

    assert!(worker.is_working());
    worker.stop().await;
}
