use std::collections::HashSet;

use bytes::Bytes;
use futures::future::join_all;
use posthaste_jobs::State;
use posthaste_store::{Accepted, Headers, JobFilter, NewEvent};

use crate::on_both;
use crate::place::{Place, accept_one, event_id, new_event, new_job, start};

on_both!(
    of_a_hundred_copies_at_once_one_is_accepted_and_the_others_learn_its_id,
    of_copies_sent_through_two_processes_one_is_accepted,
    copies_of_many_events_in_other_orders_through_two_processes_never_block_each_other,
    the_same_provider_id_from_another_source_is_another_event,
    a_duplicate_adds_no_job,
    an_accept_made_again_after_a_lost_answer_is_the_same_accept,
    an_answered_accept_is_there_after_the_ledger_was_dropped,
    bytes_are_kept_exactly,
    a_body_of_25_mib_is_kept_exactly,
    a_provider_id_of_500_bytes_is_an_identity,
    nul_characters_in_texts_do_not_fail_the_event,
    one_event_that_cannot_be_written_does_not_take_the_others_with_it,
    an_event_without_jobs_is_accepted,
    a_closed_ledger_answers_those_who_waited_and_refuses_later_ones,
);

fn copies(event: &NewEvent, count: usize) -> Vec<NewEvent> {
    (0..count)
        .map(|_| NewEvent {
            id: event_id(),
            jobs: vec![new_job()],
            ..event.clone()
        })
        .collect()
}

/// Returns the event that was accepted, after checking that all others were told its id.
fn only_one(events: &[NewEvent], answers: &[Accepted]) -> NewEvent {
    let accepted: Vec<_> = events
        .iter()
        .zip(answers)
        .filter(|(_, answer)| **answer == Accepted::New)
        .map(|(event, _)| event)
        .collect();
    assert_eq!(accepted.len(), 1, "accepted {} times", accepted.len());
    let others = answers
        .iter()
        .filter(|answer| **answer == Accepted::Duplicate(accepted[0].id))
        .count();
    assert_eq!(others, events.len() - 1);
    accepted[0].clone()
}

async fn of_a_hundred_copies_at_once_one_is_accepted_and_the_others_learn_its_id(place: &Place) {
    let ledger = place.open().await;
    let events = copies(&new_event(), 100);

    let answers = join_all(events.iter().cloned().map(|event| ledger.accept(event))).await;

    let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
    let accepted = only_one(&events, &answers);
    let jobs = ledger.jobs(&JobFilter::default(), None, 10).await.unwrap();
    assert_eq!(
        jobs.iter().map(|job| job.id).collect::<Vec<_>>(),
        [accepted.jobs[0].id]
    );
}

async fn of_copies_sent_through_two_processes_one_is_accepted(place: &Place) {
    let ledgers = [place.open().await, place.open().await];
    let events = copies(&new_event(), 100);

    let calls = events
        .iter()
        .cloned()
        .enumerate()
        .map(|(n, event)| ledgers[n % 2].accept(event));
    let answers: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();

    only_one(&events, &answers);
    assert_eq!(ledgers[0].count(&JobFilter::default()).await.unwrap(), 1);
}

async fn copies_of_many_events_in_other_orders_through_two_processes_never_block_each_other(place: &Place) {
    let ledgers = [place.open().await, place.open().await];
    let events: Vec<_> = (0..300).map(|_| new_event()).collect();
    let forwards = events.iter().cloned().map(|event| ledgers[0].accept(event));
    let backwards = events
        .iter()
        .rev()
        .map(|event| ledgers[1].accept(copies(event, 1).remove(0)));

    let (first, second) = futures::join!(join_all(forwards), join_all(backwards));

    let answers: Vec<_> = first.into_iter().chain(second).map(Result::unwrap).collect();
    assert_eq!(
        answers.iter().filter(|answer| **answer == Accepted::New).count(),
        300
    );
    assert_eq!(ledgers[0].count(&JobFilter::default()).await.unwrap(), 300);
}

async fn the_same_provider_id_from_another_source_is_another_event(place: &Place) {
    let ledger = place.open().await;
    let event = new_event();
    let other = NewEvent {
        source: "github".to_owned(),
        ..copies(&event, 1).remove(0)
    };

    assert_eq!(ledger.accept(event).await.unwrap(), Accepted::New);
    assert_eq!(ledger.accept(other).await.unwrap(), Accepted::New);
}

async fn a_duplicate_adds_no_job(place: &Place) {
    let ledger = place.open().await;
    let event = new_event();
    let again = copies(&event, 1).remove(0);
    ledger.accept(event.clone()).await.unwrap();

    assert_eq!(
        ledger.accept(again.clone()).await.unwrap(),
        Accepted::Duplicate(event.id)
    );

    assert_eq!(ledger.count(&JobFilter::default()).await.unwrap(), 1);
    assert!(ledger.job(again.jobs[0].id).await.unwrap().is_none());
    assert!(ledger.event(again.id).await.unwrap().is_none());
}

async fn an_accept_made_again_after_a_lost_answer_is_the_same_accept(place: &Place) {
    let ledger = place.open().await;
    let event = new_event();

    assert_eq!(ledger.accept(event.clone()).await.unwrap(), Accepted::New);
    assert_eq!(ledger.accept(event).await.unwrap(), Accepted::New);

    assert_eq!(ledger.count(&JobFilter::default()).await.unwrap(), 1);
}

async fn an_answered_accept_is_there_after_the_ledger_was_dropped(place: &Place) {
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    drop(ledger);

    let ledger = place.open().await;

    assert_eq!(ledger.job(job).await.unwrap().unwrap().state, State::Queued);
}

async fn bytes_are_kept_exactly(place: &Place) {
    let ledger = place.open().await;
    let all: Bytes = (0..=255_u8).collect();
    let value: Bytes = (0..=255_u8).filter(|byte| !b"\r\n".contains(byte)).collect();
    let headers = Headers::new(vec![
        ("X-Bytes".to_owned(), value),
        ("X-Twice".to_owned(), Bytes::from_static(b"1")),
        ("x-twice".to_owned(), Bytes::new()),
    ]);
    let event = NewEvent {
        body: all.clone(),
        headers: headers.clone(),
        ..new_event()
    };
    let (id, job) = (event.id, event.jobs[0].id);
    ledger.accept(event).await.unwrap();

    let (_, shown) = ledger.event(id).await.unwrap().unwrap();
    let claimed = start(&ledger, job).await.event.unwrap();

    for read in [shown, claimed] {
        assert_eq!(read.body, all);
        assert_eq!(read.headers, headers);
    }
}

async fn a_body_of_25_mib_is_kept_exactly(place: &Place) {
    let ledger = place.open().await;
    let body: Bytes = (0..25 * 1024 * 1024_u32)
        .map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    let event = NewEvent {
        body: body.clone(),
        ..new_event()
    };
    let (id, job) = (event.id, event.jobs[0].id);
    ledger.accept(event).await.unwrap();

    let (row, shown) = ledger.event(id).await.unwrap().unwrap();
    let claimed = start(&ledger, job).await.event.unwrap();

    assert_eq!(row.size, 25 * 1024 * 1024);
    assert!(shown.body == body, "the body that is shown is another");
    assert!(claimed.body == body, "the body that is delivered is another");
}

async fn a_provider_id_of_500_bytes_is_an_identity(place: &Place) {
    let ledger = place.open().await;
    let event = NewEvent {
        provider_id: "é".repeat(250),
        ..new_event()
    };
    let again = copies(&event, 1).remove(0);

    assert_eq!(ledger.accept(event.clone()).await.unwrap(), Accepted::New);
    assert_eq!(ledger.accept(again).await.unwrap(), Accepted::Duplicate(event.id));
}

async fn nul_characters_in_texts_do_not_fail_the_event(place: &Place) {
    let ledger = place.open().await;
    let event = NewEvent {
        provider_id: "evt\0_1".to_owned(),
        event_type: Some("a\0b".to_owned()),
        ..new_event()
    };
    let (id, again) = (event.id, copies(&event, 1).remove(0));

    assert_eq!(ledger.accept(event).await.unwrap(), Accepted::New);
    assert_eq!(ledger.accept(again).await.unwrap(), Accepted::Duplicate(id));

    let (row, _) = ledger.event(id).await.unwrap().unwrap();
    assert_eq!(row.event_type.as_deref(), Some("a\u{fffd}b"));
}

async fn one_event_that_cannot_be_written_does_not_take_the_others_with_it(place: &Place) {
    let ledger = place.open().await;
    let good: Vec<_> = (0..20).map(|_| new_event()).collect();
    let taken = good[0].jobs[0].clone();
    ledger.accept(good[0].clone()).await.unwrap();
    // Another event whose job has an id that is taken.
    let bad = NewEvent {
        jobs: vec![taken],
        ..new_event()
    };
    let events = good[1..10].iter().chain([&bad]).chain(&good[10..]);

    let answers = join_all(events.cloned().map(|event| ledger.accept(event))).await;

    assert_eq!(
        answers
            .iter()
            .filter(|answer| matches!(answer, Ok(Accepted::New)))
            .count(),
        19
    );
    assert!(answers[9].is_err());
    assert!(
        ledger.event(bad.id).await.unwrap().is_none(),
        "half of a refused event was written"
    );
    let ids: HashSet<_> = ledger
        .jobs(&JobFilter::default(), None, 100)
        .await
        .unwrap()
        .iter()
        .map(|job| job.id)
        .collect();
    assert_eq!(ids, good.iter().map(|event| event.jobs[0].id).collect());
}

async fn an_event_without_jobs_is_accepted(place: &Place) {
    let ledger = place.open().await;
    let event = NewEvent {
        jobs: Vec::new(),
        ..new_event()
    };

    assert_eq!(ledger.accept(event.clone()).await.unwrap(), Accepted::New);

    assert_eq!(ledger.event(event.id).await.unwrap().unwrap().0.jobs, 0);
}

async fn a_closed_ledger_answers_those_who_waited_and_refuses_later_ones(place: &Place) {
    let ledger = place.open().await;
    let events: Vec<_> = (0..50).map(|_| new_event()).collect();
    let mut calls: Vec<_> = events
        .iter()
        .map(|event| Box::pin(ledger.accept(event.clone())))
        .collect();
    // Each has handed its event to the writer once it was polled.
    for call in &mut calls {
        assert!(futures::poll!(call).is_pending());
    }

    let (answers, ()) = futures::join!(join_all(calls), ledger.close());

    assert!(
        answers.iter().all(|answer| matches!(answer, Ok(Accepted::New))),
        "{answers:?}"
    );
    assert!(ledger.accept(new_event()).await.is_err());
    assert_eq!(place.open().await.count(&JobFilter::default()).await.unwrap(), 50);
}
