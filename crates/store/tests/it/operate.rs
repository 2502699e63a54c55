use std::time::Duration;

use posthaste_jobs::{Attempt, DeadReason, Ending, JobId, Queue, State};
use posthaste_store::{Claim, JobFilter, Ledger, LedgerError, NewJob};

use crate::on_both;
use crate::place::{Place, accept_one, claim, event_id, lose_workers, new_event, new_job, run, start};

on_both!(
    a_replay_touches_what_has_ended_badly_and_nothing_else,
    a_replayed_job_is_due_and_unrelayed_at_once_with_a_fresh_budget,
    a_replayed_job_is_fenced_from_its_earlier_run,
    a_replay_stops_at_its_limit_with_the_oldest,
    every_replay_counts,
    a_discard_closes_dead_letters_and_nothing_else,
    jobs_added_to_an_event_are_unrelayed_at_once_and_count_as_a_replay,
    no_job_is_added_to_an_event_that_is_not_there,
);

const DEAD: Ending = Ending::Dead(DeadReason::Exhausted);

async fn state(ledger: &Ledger, job: JobId) -> State {
    ledger.job(job).await.unwrap().unwrap().state
}

/// Makes one job in each state.
async fn one_in_each_state(place: &Place, ledger: &Ledger) -> Vec<(State, JobId)> {
    let mut jobs = Vec::new();
    for state in State::ALL {
        let job = accept_one(ledger).await;
        let finished = if state.is_unfinished() { "null" } else { "1" };
        let sql = format!("update jobs set state = '{state}', finished_at = {finished} where id = '{job}'");
        place.execute(&sql).await;
        jobs.push((state, job));
    }
    jobs
}

async fn a_replay_touches_what_has_ended_badly_and_nothing_else(place: &Place) {
    let ledger = place.open().await;
    let jobs = one_in_each_state(place, &ledger).await;
    let badly = [State::Dead, State::Cancelled, State::Discarded];

    let replayed = ledger.replay(&JobFilter::default(), 100).await.unwrap();

    for (before, job) in jobs {
        let touched = badly.contains(&before);
        assert_eq!(replayed.contains(&job), touched, "{before}");
        let row = ledger.job(job).await.unwrap().unwrap();
        assert_eq!(row.state, if touched { State::Queued } else { before });
        assert_eq!(row.replays, u32::from(touched), "{before}");
    }
}

async fn a_replayed_job_is_due_and_unrelayed_at_once_with_a_fresh_budget(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    lose_workers(place, &ledger, job, 3).await;
    assert!(matches!(claim(&ledger, job).await, Claim::Crashed));

    assert_eq!(
        ledger
            .replay(
                &JobFilter {
                    ids: vec![job],
                    ..JobFilter::default()
                },
                10
            )
            .await
            .unwrap(),
        [job]
    );

    let row = ledger.job(job).await.unwrap().unwrap();
    assert_eq!((row.finished_at, row.dead_reason, row.attempts), (None, None, 0));
    assert_eq!(ledger.unrelayed(Queue::Webhooks, 10).await.unwrap()[0].job, job);
    assert_eq!(start(&ledger, job).await.attempt, Attempt::FIRST);
    place.end_leases().await;
    lose_workers(place, &ledger, job, 2).await;
    assert!(matches!(claim(&ledger, job).await, Claim::Crashed));
}

async fn a_replayed_job_is_fenced_from_its_earlier_run(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    let first = start(&ledger, job).await.lease;
    crate::place::settle(&ledger, first, DEAD).await;
    ledger.replay(&JobFilter::default(), 10).await.unwrap();

    assert!(start(&ledger, job).await.lease.token > first.token);
}

async fn a_replay_stops_at_its_limit_with_the_oldest(place: &Place) {
    let ledger = place.open().await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let job = accept_one(&ledger).await;
        run(&ledger, job, DEAD).await;
        jobs.push(job);
    }

    let mut replayed = ledger.replay(&JobFilter::default(), 2).await.unwrap();

    replayed.sort_unstable();
    assert_eq!(replayed, jobs[..2]);
    assert_eq!(state(&ledger, jobs[2]).await, State::Dead);
}

async fn every_replay_counts(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    for _ in 0..2 {
        run(&ledger, job, DEAD).await;
        assert_eq!(ledger.replay(&JobFilter::default(), 10).await.unwrap(), [job]);
    }

    assert_eq!(ledger.job(job).await.unwrap().unwrap().replays, 2);
    assert_eq!(ledger.attempts(job).await.unwrap().len(), 2);
    assert!(ledger.replay(&JobFilter::default(), 10).await.unwrap().is_empty());
}

async fn a_discard_closes_dead_letters_and_nothing_else(place: &Place) {
    let ledger = place.open().await;
    let jobs = one_in_each_state(place, &ledger).await;

    let discarded = ledger.discard(&JobFilter::default(), 100).await.unwrap();

    for (before, job) in jobs {
        let after = if before == State::Dead {
            State::Discarded
        } else {
            before
        };
        assert_eq!(state(&ledger, job).await, after);
        assert_eq!(discarded.contains(&job), before == State::Dead);
    }
}

async fn jobs_added_to_an_event_are_unrelayed_at_once_and_count_as_a_replay(place: &Place) {
    let ledger = place.open().await;
    let event = new_event();
    ledger.accept(event.clone()).await.unwrap();
    let later = NewJob {
        wait: Duration::from_secs(600),
        ..new_job()
    };
    let added = vec![new_job(), later];
    let ids: Vec<_> = added.iter().map(|job| job.id).collect();

    ledger.add_jobs(event.id, added).await.unwrap();

    let due: Vec<_> = ledger
        .unrelayed(Queue::Webhooks, 10)
        .await
        .unwrap()
        .iter()
        .map(|due| due.job)
        .collect();
    assert_eq!(due.len(), 2);
    assert!(ids.iter().all(|id| due.contains(id)));
    assert_eq!(state(&ledger, ids[1]).await, State::Scheduled);
    let claimed = start(&ledger, ids[0]).await;
    assert_eq!((claimed.replays, claimed.event.unwrap().id), (1, event.id));
    assert_eq!(ledger.event(event.id).await.unwrap().unwrap().0.jobs, 3);
}

async fn no_job_is_added_to_an_event_that_is_not_there(place: &Place) {
    let ledger = place.open().await;

    let added = ledger.add_jobs(event_id(), vec![new_job()]).await;

    assert!(matches!(added, Err(LedgerError::Refused(_))), "{added:?}");
    assert_eq!(ledger.count(&JobFilter::default()).await.unwrap(), 0);
}
