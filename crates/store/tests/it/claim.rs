use std::time::Duration;

use futures::future::join_all;
use posthaste_jobs::{Attempt, DeadReason, Ending, State};
use posthaste_store::{Accepted, Claim, NewEvent, NewJob};

use crate::on_both;
use crate::place::{
    LEASE, Place, accept_one, claim, claim_alone, claim_as, job_id, lose_workers, new_event, new_job, run,
    settle, start,
};

on_both!(
    a_claim_brings_the_job_and_its_event,
    two_jobs_of_one_event_claimed_together_each_bring_it,
    of_many_claims_of_one_job_at_once_one_starts_it,
    a_job_is_in_progress_until_its_lease_ends,
    a_job_not_due_says_how_long_to_wait,
    a_job_half_a_second_early_is_started,
    a_finished_job_says_how_it_ended,
    an_unknown_job_is_unknown,
    a_job_that_loses_three_workers_is_a_dead_letter_and_is_not_started_a_fourth_time,
    a_job_that_has_lost_two_workers_is_started_only_by_who_runs_nothing_else,
    a_suspect_that_waits_to_be_run_alone_is_charged_nothing,
    a_worker_that_claims_its_own_job_anew_has_not_been_lost,
    an_ending_clears_a_job_of_the_workers_it_lost_and_a_snooze_does_not,
    a_crash_spends_no_attempt,
    a_job_of_an_unknown_kind_is_started_and_says_so,
    a_thousand_claims_at_once_start_a_thousand_jobs,
);

async fn a_claim_brings_the_job_and_its_event(place: &Place) {
    let ledger = place.open().await;
    let event = new_event();
    let job = event.jobs[0].clone();
    ledger.accept(event.clone()).await.unwrap();

    let claimed = start(&ledger, job.id).await;

    assert_eq!(claimed.lease.job, job.id);
    assert_eq!(claimed.kind, Ok(job.kind));
    assert_eq!(claimed.payload, job.payload);
    assert_eq!(claimed.attempt, Attempt::FIRST);
    assert_eq!(claimed.replays, 0);
    let read = claimed.event.unwrap();
    assert_eq!(
        (read.id, &read.source, &read.event_type),
        (event.id, &event.source, &event.event_type)
    );
    assert_eq!((read.headers, read.body), (event.headers, event.body));
    assert_eq!(ledger.job(job.id).await.unwrap().unwrap().state, State::Running);
}

async fn two_jobs_of_one_event_claimed_together_each_bring_it(place: &Place) {
    let ledger = place.open().await;
    let event = NewEvent {
        jobs: vec![new_job(), new_job()],
        ..new_event()
    };
    ledger.accept(event.clone()).await.unwrap();

    let claims = join_all(event.jobs.iter().map(|job| start(&ledger, job.id))).await;

    assert!(
        claims
            .iter()
            .all(|claimed| claimed.event.as_ref().unwrap().body == event.body)
    );
}

async fn of_many_claims_of_one_job_at_once_one_starts_it(place: &Place) {
    let ledgers = [place.open().await, place.open().await];
    let job = accept_one(&ledgers[0]).await;

    let claims = join_all((0..100).map(|n| claim(&ledgers[n % 2], job))).await;

    assert_eq!(
        claims
            .iter()
            .filter(|claim| matches!(claim, Claim::Started(_)))
            .count(),
        1
    );
    assert_eq!(
        claims
            .iter()
            .filter(|claim| matches!(claim, Claim::InProgress(_)))
            .count(),
        99
    );
}

async fn a_job_is_in_progress_until_its_lease_ends(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    let first = start(&ledger, job).await;

    let Claim::InProgress(wait) = claim(&ledger, job).await else {
        panic!("two workers hold the job")
    };
    assert!(wait <= LEASE && wait > LEASE / 2, "{wait:?}");

    place.end_leases().await;
    let second = start(&ledger, job).await;
    assert_eq!(second.lease.token, first.lease.token + 1);
}

async fn a_job_not_due_says_how_long_to_wait(place: &Place) {
    let ledger = place.open().await;
    let wait = Duration::from_secs(600);
    let event = NewEvent {
        jobs: vec![NewJob { wait, ..new_job() }],
        ..new_event()
    };
    let job = event.jobs[0].id;
    ledger.accept(event).await.unwrap();
    assert_eq!(ledger.job(job).await.unwrap().unwrap().state, State::Scheduled);

    let Claim::NotDue(left) = claim(&ledger, job).await else {
        panic!("a job was started before its time")
    };
    assert!(left <= wait && left > wait / 2, "{left:?}");

    place.make_due().await;
    start(&ledger, job).await;
}

async fn a_job_half_a_second_early_is_started(place: &Place) {
    let ledger = place.open().await;
    let early = |wait| NewEvent {
        jobs: vec![NewJob { wait, ..new_job() }],
        ..new_event()
    };
    let at = early(Duration::from_millis(500));
    let past = early(Duration::from_secs(60));
    for event in [&at, &past] {
        assert_eq!(ledger.accept(event.clone()).await.unwrap(), Accepted::New);
    }

    start(&ledger, at.jobs[0].id).await;
    assert!(matches!(claim(&ledger, past.jobs[0].id).await, Claim::NotDue(_)));
}

async fn a_finished_job_says_how_it_ended(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    run(&ledger, job, Ending::Succeeded).await;
    let dead = accept_one(&ledger).await;
    run(&ledger, dead, Ending::Dead(DeadReason::Permanent)).await;

    assert!(matches!(
        claim(&ledger, job).await,
        Claim::Finished(State::Succeeded)
    ));
    assert!(matches!(claim(&ledger, dead).await, Claim::Finished(State::Dead)));
}

async fn an_unknown_job_is_unknown(place: &Place) {
    let ledger = place.open().await;

    assert!(matches!(claim(&ledger, job_id()).await, Claim::Unknown));
}

async fn a_job_that_loses_three_workers_is_a_dead_letter_and_is_not_started_a_fourth_time(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    lose_workers(place, &ledger, job, 3).await;

    assert!(matches!(claim(&ledger, job).await, Claim::Crashed));

    let row = ledger.job(job).await.unwrap().unwrap();
    assert_eq!(
        (row.state, row.dead_reason.as_deref()),
        (State::Dead, Some("crashed"))
    );
    assert_eq!(
        row.last_error.as_deref(),
        Some(
            "worker lost-3 was lost: it stopped renewing its lease (killed, aborted, out of memory or cut off)"
        )
    );
    assert!(row.finished_at.is_some());
    assert!(matches!(claim(&ledger, job).await, Claim::Finished(State::Dead)));
}

async fn a_job_that_has_lost_two_workers_is_started_only_by_who_runs_nothing_else(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    lose_workers(place, &ledger, job, 1).await;
    assert!(matches!(claim(&ledger, job).await, Claim::Started(_)));
    place.end_leases().await;

    assert!(matches!(claim_as(&ledger, job, "worker-2").await, Claim::Suspect));
    assert!(matches!(
        claim_alone(&ledger, job, "worker-2").await,
        Claim::Started(_)
    ));
    assert!(matches!(
        claim_as(&ledger, job, "worker-3").await,
        Claim::InProgress(_)
    ));
}

async fn a_suspect_that_waits_to_be_run_alone_is_charged_nothing(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    lose_workers(place, &ledger, job, 2).await;

    for worker in ["a", "b", "c", "d"] {
        assert!(matches!(claim_as(&ledger, job, worker).await, Claim::Suspect));
    }
    let Claim::Started(claimed) = claim_alone(&ledger, job, "e").await else {
        panic!("waiting has spent its budget");
    };
    ledger.give_back(&[claimed.lease]).await.unwrap();

    assert!(matches!(claim_as(&ledger, job, "f").await, Claim::Suspect));
}

async fn a_worker_that_claims_its_own_job_anew_has_not_been_lost(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    for _ in 0..5 {
        start(&ledger, job).await;
        place.end_leases().await;
    }

    let row = ledger.job(job).await.unwrap().unwrap();
    assert_eq!((row.error_class, row.last_error), (None, None));
    assert!(matches!(
        claim_as(&ledger, job, "worker-2").await,
        Claim::Started(_)
    ));
}

async fn an_ending_clears_a_job_of_the_workers_it_lost_and_a_snooze_does_not(place: &Place) {
    let ledger = place.open().await;
    let wait = Duration::ZERO;
    for (ending, suspect) in [
        (Ending::Retrying { wait }, false),
        (Ending::Parked { wait }, true),
    ] {
        let job = accept_one(&ledger).await;
        lose_workers(place, &ledger, job, 2).await;
        let Claim::Started(claimed) = claim_alone(&ledger, job, "worker-1").await else {
            panic!("expected to start the job");
        };
        settle(&ledger, claimed.lease, ending).await;

        let next = claim_as(&ledger, job, "worker-2").await;

        assert_eq!(matches!(next, Claim::Suspect), suspect, "{ending:?}: {next:?}");
    }
}

async fn a_crash_spends_no_attempt(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    start(&ledger, job).await;
    place.end_leases().await;

    let again = start(&ledger, job).await;

    assert_eq!(again.attempt, Attempt::FIRST);
    settle(&ledger, again.lease, Ending::Succeeded).await;
    assert_eq!(ledger.job(job).await.unwrap().unwrap().attempts, 1);
}

async fn a_job_of_an_unknown_kind_is_started_and_says_so(place: &Place) {
    let ledger = place.open().await;
    let strange = accept_one(&ledger).await;
    place.execute("update jobs set kind = 'teleport'").await;
    let known = accept_one(&ledger).await;

    let (strange, known) = futures::join!(start(&ledger, strange), start(&ledger, known));

    assert_eq!(
        strange.kind.unwrap_err().to_string(),
        r#"no kind of job is called "teleport""#
    );
    assert!(known.kind.is_ok());
}

async fn a_thousand_claims_at_once_start_a_thousand_jobs(place: &Place) {
    let ledger = place.open().await;
    let jobs = join_all((0..1000).map(|_| accept_one(&ledger))).await;

    let claims = join_all(jobs.iter().map(|job| start(&ledger, *job))).await;

    assert!(
        claims
            .iter()
            .zip(&jobs)
            .all(|(claimed, job)| claimed.lease.job == *job)
    );
}
