use std::time::Duration;

use futures::future::join_all;
use posthaste_jobs::{Attempt, DeadReason, Ending, State};
use posthaste_store::{Claim, JobFilter, Lease, Settled, Settlement};

use crate::on_both;
use crate::place::{Place, accept_one, claim, failure, run, settle, start};

on_both!(
    a_success_finishes_the_job_and_is_recorded,
    a_lost_lease_settles_nothing,
    a_lease_settles_once,
    an_old_and_the_present_lease_settled_together_count_once,
    a_retry_waits_and_spends_an_attempt,
    a_snooze_spends_nothing_and_leaves_no_record,
    a_dead_letter_says_why,
    attempts_are_numbered_on_over_replays_while_the_budget_starts_again,
    nul_characters_in_errors_do_not_fail_the_settlement,
    a_wait_without_end_is_written,
    five_hundred_settlements_at_once_are_all_written,
);

const RETRY: Ending = Ending::Retrying {
    wait: Duration::from_secs(600),
};

async fn a_success_finishes_the_job_and_is_recorded(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;

    run(&ledger, job, Ending::Succeeded).await;

    let row = ledger.job(job).await.unwrap().unwrap();
    assert_eq!(
        (row.state, row.attempts, row.dead_reason),
        (State::Succeeded, 1, None)
    );
    assert!(row.finished_at.unwrap() >= row.created_at);
    let attempts = ledger.attempts(job).await.unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!(
        (attempts[0].number, &*attempts[0].outcome, attempts[0].http_status),
        (1, "succeeded", Some(200))
    );
    assert_eq!((attempts[0].duration_ms, &*attempts[0].worker), (42, "worker-1"));
}

async fn a_lost_lease_settles_nothing(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    let old = start(&ledger, job).await.lease;
    place.end_leases().await;
    let present = start(&ledger, job).await.lease;

    assert_eq!(
        settle(&ledger, old, Ending::Dead(DeadReason::Permanent)).await,
        Settled::LeaseLost
    );

    assert_eq!(ledger.job(job).await.unwrap().unwrap().state, State::Running);
    assert!(ledger.attempts(job).await.unwrap().is_empty());
    assert_eq!(
        settle(&ledger, present, Ending::Succeeded).await,
        Settled::Written
    );
    let unknown = Lease {
        token: present.token + 1,
        ..present
    };
    assert_eq!(
        settle(&ledger, unknown, Ending::Succeeded).await,
        Settled::LeaseLost
    );
}

async fn a_lease_settles_once(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    let lease = start(&ledger, job).await.lease;

    let answers = join_all((0..10).map(|_| settle(&ledger, lease, Ending::Succeeded))).await;

    assert_eq!(
        answers
            .iter()
            .filter(|answer| **answer == Settled::Written)
            .count(),
        1
    );
    assert_eq!(ledger.attempts(job).await.unwrap().len(), 1);
}

async fn an_old_and_the_present_lease_settled_together_count_once(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    let old = start(&ledger, job).await.lease;
    place.end_leases().await;
    let present = start(&ledger, job).await.lease;

    let (lost, written) = futures::join!(
        settle(&ledger, old, Ending::Dead(DeadReason::Permanent)),
        settle(&ledger, present, Ending::Succeeded),
    );

    assert_eq!((lost, written), (Settled::LeaseLost, Settled::Written));
    assert_eq!(ledger.job(job).await.unwrap().unwrap().state, State::Succeeded);
}

async fn a_retry_waits_and_spends_an_attempt(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;

    run(&ledger, job, RETRY).await;

    let row = ledger.job(job).await.unwrap().unwrap();
    assert_eq!(
        (row.state, row.attempts, row.finished_at),
        (State::Retrying, 1, None)
    );
    assert_eq!(
        (row.error_class.as_deref(), row.last_error.as_deref()),
        (Some("status"), Some("answered 503"))
    );
    assert!(matches!(claim(&ledger, job).await, Claim::NotDue(_)));
    place.make_due().await;
    assert_eq!(start(&ledger, job).await.attempt, Attempt::new(2).unwrap());
}

async fn a_snooze_spends_nothing_and_leaves_no_record(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    run(&ledger, job, RETRY).await;
    place.make_due().await;
    let lease = start(&ledger, job).await.lease;

    let settlement = Settlement {
        lease,
        ending: Ending::Parked {
            wait: Duration::from_secs(600),
        },
        // A record that a careless caller makes of nothing tried.
        attempt: Some(failure("circuit", "circuit is open")),
        error: Some("circuit is open".to_owned()),
    };
    assert_eq!(ledger.settle(settlement).await.unwrap(), Settled::Written);

    let row = ledger.job(job).await.unwrap().unwrap();
    assert_eq!(
        (row.state, row.attempts, row.last_error.as_deref()),
        (State::Parked, 1, Some("circuit is open"))
    );
    assert_eq!(row.error_class.as_deref(), Some("status"));
    assert!(matches!(claim(&ledger, job).await, Claim::NotDue(_)));
    assert_eq!(ledger.attempts(job).await.unwrap().len(), 1);
    place.make_due().await;
    assert_eq!(start(&ledger, job).await.attempt, Attempt::new(2).unwrap());
}

async fn a_dead_letter_says_why(place: &Place) {
    let ledger = place.open().await;
    for reason in [DeadReason::Permanent, DeadReason::Exhausted] {
        let job = accept_one(&ledger).await;

        run(&ledger, job, Ending::Dead(reason)).await;

        let row = ledger.job(job).await.unwrap().unwrap();
        assert_eq!(
            (row.state, row.dead_reason.as_deref()),
            (State::Dead, Some(reason.as_str()))
        );
        assert!(row.finished_at.is_some());
    }
}

async fn attempts_are_numbered_on_over_replays_while_the_budget_starts_again(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    run(&ledger, job, RETRY).await;
    place.make_due().await;
    run(&ledger, job, Ending::Dead(DeadReason::Exhausted)).await;
    ledger.replay(&JobFilter::default(), 10).await.unwrap();

    let claimed = start(&ledger, job).await;
    settle(&ledger, claimed.lease, Ending::Succeeded).await;

    assert_eq!((claimed.attempt, claimed.replays), (Attempt::FIRST, 1));
    let attempts = ledger.attempts(job).await.unwrap();
    assert_eq!(
        attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert_eq!(attempts[0].outcome, "failed");
    assert_eq!(attempts[2].outcome, "succeeded");
}

async fn nul_characters_in_errors_do_not_fail_the_settlement(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    let lease = start(&ledger, job).await.lease;
    let mut attempt = failure("sta\0tus", "a\0b");
    attempt.response = Some("\0\u{1}\"quoted\"\\".to_owned());

    let settlement = Settlement {
        lease,
        ending: RETRY,
        attempt: Some(attempt),
        error: Some("a\0b".to_owned()),
    };
    assert_eq!(ledger.settle(settlement).await.unwrap(), Settled::Written);

    let attempts = ledger.attempts(job).await.unwrap();
    assert_eq!(attempts[0].response.as_deref(), Some("\u{fffd}\u{1}\"quoted\"\\"));
    assert_eq!(attempts[0].error.as_deref(), Some("a\u{fffd}b"));
}

async fn a_wait_without_end_is_written(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;

    run(&ledger, job, Ending::Retrying { wait: Duration::MAX }).await;

    assert!(matches!(claim(&ledger, job).await, Claim::NotDue(wait) if wait > Duration::from_secs(1 << 31)));
}

async fn five_hundred_settlements_at_once_are_all_written(place: &Place) {
    let ledger = place.open().await;
    let jobs = join_all((0..500).map(|_| accept_one(&ledger))).await;

    join_all(jobs.iter().map(|job| run(&ledger, *job, Ending::Succeeded))).await;

    let succeeded = JobFilter {
        states: vec![State::Succeeded],
        ..JobFilter::default()
    };
    assert_eq!(ledger.count(&succeeded).await.unwrap(), 500);
    for job in &jobs[..10] {
        assert_eq!(ledger.attempts(*job).await.unwrap().len(), 1);
    }
}
