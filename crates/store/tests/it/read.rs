use posthaste_jobs::{DeadReason, Ending, JobId, Kind, Queue, State, Timestamp};
use posthaste_store::{EventFilter, JobFilter, Ledger, NewEvent, NewJob};

use crate::on_both;
use crate::place::{Place, accept_one, new_event, new_job, run};

on_both!(
    jobs_are_listed_newest_first_in_pages,
    each_job_filter_finds_what_it_names_and_nothing_else,
    all_that_a_filter_names_must_hold,
    dead_letters_are_found_by_when_they_ended_and_others_by_when_they_came,
    a_filter_is_a_value_and_never_sql,
    events_are_listed_newest_first_in_pages_with_their_jobs,
    each_event_filter_finds_what_it_names_and_nothing_else,
    what_is_not_there_is_none,
);

const PERMANENT: Ending = Ending::Dead(DeadReason::Permanent);

/// Returns what a filter finds, after checking that it counts the same.
async fn find(ledger: &Ledger, filter: JobFilter) -> Vec<JobId> {
    let found: Vec<_> = ledger
        .jobs(&filter, None, 100)
        .await
        .unwrap()
        .iter()
        .map(|job| job.id)
        .collect();
    assert_eq!(ledger.count(&filter).await.unwrap(), found.len() as u64);
    found
}

async fn jobs_are_listed_newest_first_in_pages(place: &Place) {
    let ledger = place.open().await;
    let mut jobs = Vec::new();
    for _ in 0..5 {
        jobs.push(accept_one(&ledger).await);
    }
    let page = async |before| -> Vec<JobId> {
        let rows = ledger.jobs(&JobFilter::default(), before, 2).await.unwrap();
        rows.iter().map(|job| job.id).collect()
    };

    assert_eq!(page(None).await, [jobs[4], jobs[3]]);
    assert_eq!(page(Some(jobs[3])).await, [jobs[2], jobs[1]]);
    assert_eq!(page(Some(jobs[1])).await, [jobs[0]]);
    assert_eq!(page(Some(jobs[0])).await, []);
}

async fn each_job_filter_finds_what_it_names_and_nothing_else(place: &Place) {
    let ledger = place.open().await;
    let event = NewEvent {
        source: "github".to_owned(),
        jobs: vec![NewJob {
            endpoint: Some("billing".to_owned()),
            ..new_job()
        }],
        ..new_event()
    };
    let job = event.jobs[0].id;
    ledger.accept(event.clone()).await.unwrap();
    run(&ledger, job, PERMANENT).await;
    let other = accept_one(&ledger).await;
    let any = JobFilter::default;

    let finders = [
        JobFilter {
            ids: vec![job],
            ..any()
        },
        JobFilter {
            states: vec![State::Dead, State::Parked],
            ..any()
        },
        JobFilter {
            states: vec![State::Dead],
            ..any()
        },
        JobFilter {
            source: Some("github".to_owned()),
            ..any()
        },
        JobFilter {
            endpoint: Some("billing".to_owned()),
            ..any()
        },
        JobFilter {
            event: Some(event.id),
            ..any()
        },
        JobFilter {
            error: Some("status".to_owned()),
            ..any()
        },
        JobFilter {
            error: Some("Answered 50".to_owned()),
            ..any()
        },
    ];
    for filter in finders {
        assert_eq!(find(&ledger, filter.clone()).await, [job], "{filter:?}");
    }
    assert_eq!(
        find(
            &ledger,
            JobFilter {
                states: vec![State::Queued],
                ..any()
            }
        )
        .await,
        [other]
    );
    let both = JobFilter {
        queue: Some(Queue::Webhooks),
        kind: Some(Kind::WebhookDelivery),
        ..any()
    };
    assert_eq!(find(&ledger, both).await, [other, job]);
    assert_eq!(
        find(
            &ledger,
            JobFilter {
                error: Some("stat".to_owned()),
                ..any()
            }
        )
        .await,
        []
    );
}

async fn all_that_a_filter_names_must_hold(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;

    let mut filter = JobFilter {
        ids: vec![job],
        source: Some("stripe".to_owned()),
        ..JobFilter::default()
    };
    assert_eq!(find(&ledger, filter.clone()).await, [job]);
    filter.states = vec![State::Dead];
    assert_eq!(find(&ledger, filter).await, []);
}

async fn dead_letters_are_found_by_when_they_ended_and_others_by_when_they_came(place: &Place) {
    let ledger = place.open().await;
    let dead = accept_one(&ledger).await;
    run(&ledger, dead, PERMANENT).await;
    let succeeded = accept_one(&ledger).await;
    run(&ledger, succeeded, Ending::Succeeded).await;
    place
        .execute("update jobs set created_at = 1000, finished_at = 2000")
        .await;
    let between = async |since, until| {
        let filter = JobFilter {
            since: Some(Timestamp::from_millis(since)),
            until: Some(Timestamp::from_millis(until)),
            ..JobFilter::default()
        };
        find(&ledger, filter).await
    };

    assert_eq!(between(1000, 1001).await, [succeeded]);
    assert_eq!(between(2000, 2001).await, [dead]);
    assert_eq!(between(1000, 2001).await, [succeeded, dead]);
    assert_eq!(between(1001, 2000).await, []);
}

async fn a_filter_is_a_value_and_never_sql(place: &Place) {
    let ledger = place.open().await;
    accept_one(&ledger).await;

    for text in ["' or true --", "\0", "%", "_", "\\"] {
        let text = Some(text.to_owned());
        let filter = JobFilter {
            source: text.clone(),
            endpoint: text.clone(),
            error: text,
            ..JobFilter::default()
        };
        assert_eq!(find(&ledger, filter.clone()).await, []);
        assert!(ledger.replay(&filter, 10).await.unwrap().is_empty());
    }
}

async fn events_are_listed_newest_first_in_pages_with_their_jobs(place: &Place) {
    let ledger = place.open().await;
    let events: Vec<_> = (0..3)
        .map(|count| NewEvent {
            jobs: (0..count).map(|_| new_job()).collect(),
            ..new_event()
        })
        .collect();
    for event in &events {
        ledger.accept(event.clone()).await.unwrap();
    }

    let first = ledger.events(&EventFilter::default(), None, 2).await.unwrap();
    let second = ledger
        .events(&EventFilter::default(), Some(first[1].id), 2)
        .await
        .unwrap();

    let rows: Vec<_> = first.iter().chain(&second).collect();
    assert_eq!(
        rows.iter().map(|row| row.id).collect::<Vec<_>>(),
        [events[2].id, events[1].id, events[0].id]
    );
    assert_eq!(rows.iter().map(|row| row.jobs).collect::<Vec<_>>(), [2, 1, 0]);
    assert_eq!((rows[0].size, &rows[0].provider_id), (2, &events[2].provider_id));
}

async fn each_event_filter_finds_what_it_names_and_nothing_else(place: &Place) {
    let ledger = place.open().await;
    let event = NewEvent {
        source: "github".to_owned(),
        provider_id: "delivery-1".to_owned(),
        event_type: Some("push".to_owned()),
        jobs: Vec::new(),
        ..new_event()
    };
    ledger.accept(event.clone()).await.unwrap();
    place.execute("update events set received_at = 1000").await;
    ledger.accept(new_event()).await.unwrap();
    let any = EventFilter::default;

    let finders = [
        EventFilter {
            source: Some("github".to_owned()),
            ..any()
        },
        EventFilter {
            event_type: Some("push".to_owned()),
            ..any()
        },
        EventFilter {
            provider_id: Some("delivery-1".to_owned()),
            ..any()
        },
        EventFilter {
            unrouted: true,
            ..any()
        },
        EventFilter {
            since: Some(Timestamp::from_millis(1000)),
            until: Some(Timestamp::from_millis(1001)),
            ..any()
        },
    ];
    for filter in finders {
        let found = ledger.events(&filter, None, 10).await.unwrap();
        assert_eq!(
            found.iter().map(|row| row.id).collect::<Vec<_>>(),
            [event.id],
            "{filter:?}"
        );
    }
    let before = EventFilter {
        until: Some(Timestamp::from_millis(1000)),
        ..any()
    };
    assert!(ledger.events(&before, None, 10).await.unwrap().is_empty());
}

async fn what_is_not_there_is_none(place: &Place) {
    let ledger = place.open().await;

    assert!(ledger.job(crate::place::job_id()).await.unwrap().is_none());
    assert!(ledger.event(crate::place::event_id()).await.unwrap().is_none());
    assert!(ledger.attempts(crate::place::job_id()).await.unwrap().is_empty());
}
