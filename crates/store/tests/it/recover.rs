use std::time::Duration;

use posthaste_jobs::{DeadReason, Ending, JobId, Lane, Priority, Queue, State};
use posthaste_store::{Claim, JobFilter, Ledger, NewEvent, NewJob, Settled};

use crate::on_both;
use crate::place::{LEASE, Place, accept_one, claim, new_event, new_job, run, settle, start};

on_both!(
    a_job_that_nobody_claims_is_unrelayed_after_three_seconds_and_not_before,
    a_claimed_job_is_not_unrelayed,
    a_relayed_job_is_unrelayed_no_longer,
    a_job_replayed_while_it_was_relayed_is_relayed_once_more,
    unfinished_jobs_come_in_pages_and_finished_ones_do_not,
    an_unfinished_job_says_how_long_until_it_is_due,
    a_renewed_lease_lasts_and_a_lost_one_is_named,
    a_job_given_back_is_queued_again_and_charged_nothing,
    a_lost_lease_gives_nothing_back,
    a_job_waits_in_the_lane_of_its_priority_until_it_was_tried,
    what_is_no_job_of_ours_keeps_no_job_from_the_queue,
);

async fn unrelayed(ledger: &Ledger) -> Vec<JobId> {
    ledger
        .unrelayed(Queue::Webhooks, 100)
        .await
        .unwrap()
        .iter()
        .map(|due| due.job)
        .collect()
}

/// Lets the time of the relay come.
async fn wait_long(place: &Place) {
    place.execute("update jobs set relay_at = relay_at - 3000").await;
}

async fn a_job_that_nobody_claims_is_unrelayed_after_three_seconds_and_not_before(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    assert!(unrelayed(&ledger).await.is_empty());

    wait_long(place).await;

    let due = ledger.unrelayed(Queue::Webhooks, 100).await.unwrap();
    assert_eq!(due.len(), 1);
    assert_eq!(
        (due[0].job, due[0].wait, due[0].lane),
        (job, Duration::ZERO, Lane::Normal)
    );
}

async fn a_claimed_job_is_not_unrelayed(place: &Place) {
    let ledger = place.open().await;
    let running = accept_one(&ledger).await;
    let parked = accept_one(&ledger).await;
    start(&ledger, running).await;
    run(
        &ledger,
        parked,
        Ending::Parked {
            wait: Duration::from_secs(600),
        },
    )
    .await;

    wait_long(place).await;

    assert!(unrelayed(&ledger).await.is_empty());
}

async fn a_relayed_job_is_unrelayed_no_longer(place: &Place) {
    let ledger = place.open().await;
    let first = accept_one(&ledger).await;
    let second = accept_one(&ledger).await;
    wait_long(place).await;
    let due = ledger.unrelayed(Queue::Webhooks, 100).await.unwrap();
    assert_eq!(due[0].job, first);

    ledger.relayed(&due[..1]).await.unwrap();

    assert_eq!(unrelayed(&ledger).await, [second]);
}

async fn a_job_replayed_while_it_was_relayed_is_relayed_once_more(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    wait_long(place).await;
    let due = ledger.unrelayed(Queue::Webhooks, 100).await.unwrap();
    run(&ledger, job, Ending::Dead(DeadReason::Permanent)).await;
    ledger
        .replay(
            &JobFilter {
                ids: vec![job],
                ..JobFilter::default()
            },
            1,
        )
        .await
        .unwrap();

    ledger.relayed(&due).await.unwrap();

    assert_eq!(unrelayed(&ledger).await, [job]);
}

async fn unfinished_jobs_come_in_pages_and_finished_ones_do_not(place: &Place) {
    let ledger = place.open().await;
    let mut jobs = Vec::new();
    for _ in 0..5 {
        jobs.push(accept_one(&ledger).await);
    }
    start(&ledger, jobs[1]).await;
    run(&ledger, jobs[2], Ending::Succeeded).await;
    let page = async |after| -> Vec<JobId> {
        let due = ledger.unfinished(Queue::Webhooks, after, 2).await.unwrap();
        due.iter().map(|due| due.job).collect()
    };

    assert_eq!(page(None).await, [jobs[0], jobs[1]]);
    assert_eq!(page(Some(jobs[1])).await, [jobs[3], jobs[4]]);
    assert_eq!(page(Some(jobs[4])).await, []);
}

async fn an_unfinished_job_says_how_long_until_it_is_due(place: &Place) {
    let ledger = place.open().await;
    let wait = Duration::from_secs(600);
    let scheduled = NewEvent {
        jobs: vec![NewJob { wait, ..new_job() }],
        ..new_event()
    };
    ledger.accept(scheduled).await.unwrap();
    let running = accept_one(&ledger).await;
    start(&ledger, running).await;
    accept_one(&ledger).await;

    let due = ledger.unfinished(Queue::Webhooks, None, 10).await.unwrap();

    assert!(due[0].wait > wait / 2 && due[0].wait <= wait, "{due:?}");
    assert!(due[1].wait > LEASE / 2 && due[1].wait <= LEASE, "{due:?}");
    assert_eq!(due[2].wait, Duration::ZERO);
}

async fn a_renewed_lease_lasts_and_a_lost_one_is_named(place: &Place) {
    let ledger = place.open().await;
    let kept = accept_one(&ledger).await;
    let kept_lease = start(&ledger, kept).await.lease;
    let lost = accept_one(&ledger).await;
    let lost_lease = start(&ledger, lost).await.lease;
    place.end_leases().await;
    start(&ledger, lost).await;

    let named = ledger.renew(&[lost_lease, kept_lease], LEASE * 10).await.unwrap();

    assert_eq!(named, [lost_lease]);
    assert!(matches!(claim(&ledger, kept).await, Claim::InProgress(wait) if wait > LEASE * 9));
    assert!(matches!(claim(&ledger, lost).await, Claim::InProgress(wait) if wait <= LEASE));
}

async fn a_job_given_back_is_queued_again_and_charged_nothing(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    let lease = start(&ledger, job).await.lease;

    ledger.give_back(&[lease]).await.unwrap();

    let row = ledger.job(job).await.unwrap().unwrap();
    assert_eq!(
        (row.state, row.attempts, row.error_class),
        (State::Queued, 0, None)
    );
    assert_eq!(
        settle(&ledger, lease, Ending::Succeeded).await,
        Settled::LeaseLost
    );
    // Three workers lost make it a dead letter; the one that gave back is not among them.
    for _ in 0..2 {
        start(&ledger, job).await;
        place.end_leases().await;
    }
    start(&ledger, job).await;
}

async fn a_lost_lease_gives_nothing_back(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    let old = start(&ledger, job).await.lease;
    place.end_leases().await;
    start(&ledger, job).await;
    let dead = accept_one(&ledger).await;
    let dead_lease = start(&ledger, dead).await.lease;
    settle(&ledger, dead_lease, Ending::Dead(DeadReason::Permanent)).await;

    ledger.give_back(&[old, dead_lease]).await.unwrap();

    let running = JobFilter {
        states: vec![State::Running],
        ..JobFilter::default()
    };
    assert_eq!(ledger.count(&running).await.unwrap(), 1);
    assert_eq!(ledger.job(dead).await.unwrap().unwrap().state, State::Dead);
}

async fn a_job_waits_in_the_lane_of_its_priority_until_it_was_tried(place: &Place) {
    let ledger = place.open().await;
    let wait = Duration::ZERO;
    for (priority, lane) in [
        (Priority::High, Lane::High),
        (Priority::Normal, Lane::Normal),
        (Priority::Low, Lane::Low),
    ] {
        for (ending, tried) in [
            (None, lane),
            (Some(Ending::Retrying { wait }), Lane::Retry),
            (Some(Ending::Parked { wait }), Lane::Retry),
        ] {
            let job = NewJob {
                priority,
                ..new_job()
            };
            let event = NewEvent {
                jobs: vec![job.clone()],
                ..new_event()
            };
            ledger.accept(event).await.unwrap();
            if let Some(ending) = ending {
                run(&ledger, job.id, ending).await;
            }

            let unfinished = ledger.unfinished(Queue::Webhooks, None, 100).await.unwrap();

            let due = unfinished.iter().find(|due| due.job == job.id).unwrap();
            assert_eq!(due.lane, tried, "{priority} {ending:?}");
            assert_eq!(
                ledger.job(job.id).await.unwrap().unwrap().priority,
                priority.as_str()
            );
        }
    }
}

async fn what_is_no_job_of_ours_keeps_no_job_from_the_queue(place: &Place) {
    let ledger = place.open().await;
    accept_one(&ledger).await;
    place
        .execute("update jobs set id = 'A stranger', priority = 'none of ours'")
        .await;
    let job = accept_one(&ledger).await;
    wait_long(place).await;

    assert_eq!(unrelayed(&ledger).await, [job]);
    let unfinished = ledger.unfinished(Queue::Webhooks, None, 10).await.unwrap();
    assert_eq!(unfinished.iter().map(|due| due.job).collect::<Vec<_>>(), [job]);
}
