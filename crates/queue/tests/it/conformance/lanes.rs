//! Which of those that are due come first, and whether any come.

use std::time::Duration;

use posthaste_jobs::{JobId, Lane};
use posthaste_queue::{Ack, Entry, Queue, Timing};
use tokio::time::sleep;

use crate::support::*;

/// Puts `count` ids into each of `lanes`, and returns them by lane.
async fn fill(queue: &Queue, lanes: &[Lane], count: usize) -> Vec<Vec<JobId>> {
    let jobs: Vec<Vec<JobId>> = lanes.iter().map(|_| ids(count)).collect();
    let entries: Vec<Entry> = lanes
        .iter()
        .zip(&jobs)
        .flat_map(|(lane, jobs)| jobs.iter().map(|job| Entry::due(*job, *lane)))
        .collect();
    queue.push(&entries).await.unwrap();
    jobs
}

/// Says how many of `fetched` are in each of `lanes`.
fn shares(fetched: &[JobId], lanes: &[Vec<JobId>]) -> Vec<usize> {
    let of_lane = |lane: &Vec<JobId>| fetched.iter().filter(|job| lane.contains(job)).count();
    lanes.iter().map(of_lane).collect()
}

pub(super) async fn of_fifteen_each_lane_has_its_turns(place: Place) {
    let queue = place.open(quick());
    let lanes = fill(&queue, &Lane::ALL, 40).await;

    for _ in 0..2 {
        let fetched = queue.fetch(15).await.unwrap();
        assert_eq!(shares(&fetched, &lanes), [8, 4, 2, 1]);
    }
}

pub(super) async fn fetched_one_by_one_no_lane_starves(place: Place) {
    let queue = place.open(quick());
    let lanes = fill(&queue, &Lane::ALL, 40).await;

    let mut fetched = Vec::new();
    for _ in 0..30 {
        fetched.extend(queue.fetch(1).await.unwrap());
    }

    assert_eq!(shares(&fetched, &lanes), [16, 8, 4, 2]);
}

pub(super) async fn a_turn_that_a_lane_cannot_use_is_not_lost(place: Place) {
    let queue = place.open(quick());
    let lanes = fill(&queue, &[Lane::Normal, Lane::Low], 40).await;

    let fetched = queue.fetch(15).await.unwrap();
    assert_eq!(shares(&fetched, &lanes), [14, 1]);

    let rest = queue.fetch(100).await.unwrap();
    assert_eq!(shares(&rest, &lanes), [26, 39]);
}

pub(super) async fn within_a_lane_ids_come_in_the_order_in_which_they_went_in(place: Place) {
    let queue = place.open(quick());
    for lane in Lane::ALL {
        let [jobs] = &fill(&queue, &[lane], 50).await[..] else {
            panic!("one lane was filled");
        };
        assert_eq!(queue.fetch(20).await.unwrap(), jobs[..20], "{lane}");
        assert_eq!(queue.fetch(30).await.unwrap(), jobs[20..], "{lane}");
    }
}

pub(super) async fn an_id_that_is_pushed_into_two_lanes_is_handed_out_once(place: Place) {
    let queue = place.open(quick());
    let job = ids(1)[0];

    for lane in Lane::ALL {
        queue.push(&[Entry::due(job, lane)]).await.unwrap();
    }
    queue
        .push(&Lane::ALL.map(|lane| Entry::due(job, lane)))
        .await
        .unwrap();

    assert_eq!(queue.survey().await.unwrap().lanes, [1, 0, 0, 0]);
    assert_eq!(queue.fetch(10).await.unwrap(), [job]);
    assert_eq!(queue.fetch(10).await.unwrap(), []);
}

pub(super) async fn what_comes_due_waits_in_its_lane(place: Place) {
    let queue = place.open(quick());
    let keeper = Running::keeper(&queue);
    let entries: Vec<Entry> = Lane::ALL
        .iter()
        .zip([1, 2, 3, 4])
        .flat_map(|(lane, count)| {
            ids(count).into_iter().map(|job| Entry {
                wait: Duration::from_millis(30),
                ..Entry::due(job, *lane)
            })
        })
        .collect();

    queue.push(&entries).await.unwrap();

    until("all are due", || async {
        queue.survey().await.unwrap().lanes == [1, 2, 3, 4]
    })
    .await;
    keeper.stop().await;
}

pub(super) async fn what_is_to_come_again_waits_among_the_retries(place: Place) {
    let queue = place.open(quick());
    let keeper = Running::keeper(&queue);
    let jobs = ids(2);
    let high: Vec<Entry> = jobs.iter().map(|job| Entry::due(*job, Lane::High)).collect();
    queue.push(&high).await.unwrap();
    queue.fetch(2).await.unwrap();

    let soon = Ack::Again(Duration::from_millis(20));
    queue
        .acknowledge(&[(jobs[0], Ack::Again(Duration::ZERO)), (jobs[1], soon)])
        .await
        .unwrap();

    until("both are among the retries", || async {
        queue.survey().await.unwrap().lanes == [0, 0, 2, 0]
    })
    .await;
    keeper.stop().await;
}

pub(super) async fn a_flood_of_retries_holds_up_nothing_that_was_not_tried(place: Place) {
    let queue = place.open(quick());
    fill(&queue, &[Lane::Retry], 2000).await;
    let [fresh] = &fill(&queue, &[Lane::Normal], 13).await[..] else {
        panic!("one lane was filled");
    };

    let fetched = queue.fetch(15).await.unwrap();

    assert!(fresh.iter().all(|job| fetched.contains(job)));
}

pub(super) async fn what_was_never_begun_goes_back_before_all_lanes(place: Place) {
    let queue = place.open(quick());
    let low = ids(3);
    let entries: Vec<Entry> = low.iter().map(|job| Entry::due(*job, Lane::Low)).collect();
    queue.push(&entries).await.unwrap();
    assert_eq!(queue.fetch(2).await.unwrap(), low[..2]);
    fill(&queue, &[Lane::High], 5).await;

    queue
        .acknowledge(&[(low[0], Ack::Back), (low[1], Ack::Back)])
        .await
        .unwrap();

    assert_eq!(queue.fetch(2).await.unwrap(), low[..2]);
}

pub(super) async fn while_it_is_paused_nothing_is_handed_out_and_nothing_is_lost(place: Place) {
    let queue = place.open(quick());
    let jobs = ids(3);
    queue.push(&due(&jobs[..2])).await.unwrap();
    assert_eq!(queue.fetch(1).await.unwrap(), jobs[..1]);

    queue.set_paused(true).await.unwrap();
    queue.push(&due(&jobs[2..])).await.unwrap();
    queue.acknowledge(&[(jobs[0], Ack::Done)]).await.unwrap();

    assert!(queue.survey().await.unwrap().paused);
    assert_eq!(queue.fetch(10).await.unwrap(), []);
    queue.set_paused(false).await.unwrap();
    assert!(!queue.survey().await.unwrap().paused);
    assert_eq!(queue.fetch(10).await.unwrap(), jobs[1..]);
}

pub(super) async fn the_end_of_a_pause_wakes_an_idle_worker(place: Place) {
    let queue = place.open(Timing {
        look: NEVER,
        ..quick()
    });
    let (jobs, seen) = (ids(1), Seen::default());
    queue.set_paused(true).await.unwrap();
    queue.push(&due(&jobs)).await.unwrap();
    let worker = Running::worker(&queue, 10, 10, noting(&seen));
    sleep(Duration::from_millis(100)).await;
    assert_eq!(seen.count(), 0, "a paused queue handed out a job");

    queue.set_paused(false).await.unwrap();

    seen.all(&jobs).await;
    worker.stop().await;
}

pub(super) async fn a_process_on_hold_takes_nothing_and_is_woken_when_it_goes_on(place: Place) {
    let queue = place.open(Timing {
        look: NEVER,
        ..quick()
    });
    let (jobs, seen) = (ids(2), Seen::default());
    queue.hold(true);
    let worker = Running::worker(&queue, 10, 10, noting(&seen));
    queue.push(&due(&jobs)).await.unwrap();
    // Whoever resumes it for all does not speak for this process.
    queue.set_paused(false).await.unwrap();
    sleep(Duration::from_millis(100)).await;
    assert_eq!(seen.count(), 0, "a process on hold took a job");
    assert_eq!(queue.fetch(1).await.unwrap(), []);

    queue.hold(false);

    seen.all(&jobs).await;
    worker.stop().await;
}

pub(super) async fn a_survey_tells_how_long_the_oldest_has_waited_and_when_somebody_fetched(place: Place) {
    let queue = place.open(quick());
    let empty = queue.survey().await.unwrap();
    assert_eq!((empty.oldest, empty.fetched), (None, None));

    queue.push(&due_in(&ids(1), NEVER)).await.unwrap();
    assert_eq!(queue.survey().await.unwrap().oldest, None, "it is not due");
    queue.push(&due(&ids(2))).await.unwrap();
    sleep(Duration::from_millis(60)).await;
    queue.push(&due(&ids(1))).await.unwrap();

    let waited = queue.survey().await.unwrap().oldest.unwrap();
    assert!((60..5000).contains(&waited.as_millis()), "{waited:?}");
    queue.fetch(2).await.unwrap();
    let after = queue.survey().await.unwrap();
    assert!(after.oldest.unwrap() < waited, "the oldest was taken");
    assert!(after.fetched.unwrap() < Duration::from_secs(5));
}

pub(super) async fn what_is_overdue_and_not_promoted_counts_as_waiting(place: Place) {
    let queue = place.open(quick());

    queue
        .push(&due_in(&ids(1), Duration::from_millis(1)))
        .await
        .unwrap();

    until("it is overdue", || async {
        let survey = queue.survey().await.unwrap();
        survey.scheduled == 1 && survey.oldest.is_some()
    })
    .await;
}
