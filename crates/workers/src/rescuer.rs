//! Pushes every unfinished job again when the queue has lost its memory.
//!
//! The queue names its memory by an epoch. The ledger remembers the epoch for which everything was
//! pushed; when the two differ, everything is pushed once more. A queue that lost only a part (an
//! eviction) keeps its epoch: the sweeper is for that.

use std::time::Duration;

use posthaste_queue::{Entry, Queue};
use posthaste_store::Ledger;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::outage::Outage;
use crate::relay::entry;

/// How often the epochs are compared.
const PERIOD: Duration = Duration::from_secs(1);
/// Jobs a page.
const PAGE: u32 = 1000;

pub(crate) type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// Rescues until `stop`. `name` is the queue's name in the ledger.
pub(crate) async fn run(
    ledger: &Ledger,
    queue: &Queue,
    name: posthaste_jobs::Queue,
    stop: &CancellationToken,
) {
    let outage = Outage::new("rescuer");
    let mut known = None;
    let mut wait = Duration::ZERO;
    while stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
        // A stop does not wait for the last page: the next rescuer begins again.
        let Some(rescued) = stop
            .run_until_cancelled(rescue(ledger, queue, name, &mut known))
            .await
        else {
            return;
        };
        wait = match rescued {
            Ok(()) => {
                outage.over();
                PERIOD
            }
            Err(error) => outage.failed(Instant::now(), error.as_ref(), rand::random()),
        };
    }
}

async fn rescue(
    ledger: &Ledger,
    queue: &Queue,
    name: posthaste_jobs::Queue,
    known: &mut Option<String>,
) -> Result<(), Trouble> {
    let epoch = queue.epoch().await?;
    // What this process has seen to counts before what the ledger says: two processes that each have a
    // queue of their own would take turns there for ever.
    let forgot = known.as_ref() != Some(&epoch) && ledger.epoch(name).await?.as_ref() != Some(&epoch);
    if forgot {
        let pushed = push_all(ledger, queue, name).await?;
        // Only after the last page: a rescuer that dies on the way is followed by one that begins again.
        ledger.set_epoch(name, &epoch).await?;
        info!(queue = %name, jobs = pushed, "pushed every unfinished job into a queue that held none of them");
    }
    *known = Some(epoch);
    Ok(())
}

/// Pushes every unfinished job, page by page; returns how many.
pub(crate) async fn push_all(
    ledger: &Ledger,
    queue: &Queue,
    name: posthaste_jobs::Queue,
) -> Result<usize, Trouble> {
    let mut pushed = 0;
    let mut after = None;
    loop {
        let page = ledger.unfinished(name, after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(pushed);
        };
        after = Some(last.job);
        let entries: Vec<Entry> = page.iter().map(entry).collect();
        queue.push(&entries).await?;
        pushed += entries.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::house::{House, NAME};

    #[tokio::test]
    async fn a_queue_that_has_lost_its_memory_gets_every_unfinished_job_again() {
        let mut house = House::new().await;
        let mut jobs = [house.accept().await, house.accept().await];
        jobs.sort();
        let mut known = None;
        rescue(&house.ledger, &house.queue, NAME, &mut known)
            .await
            .unwrap();
        assert_eq!(house.queue.fetch(10).await.unwrap(), jobs);

        house.lose_the_queue().await;
        assert_eq!(house.queue.fetch(10).await.unwrap(), []);
        rescue(&house.ledger, &house.queue, NAME, &mut known)
            .await
            .unwrap();

        assert_eq!(house.queue.fetch(10).await.unwrap(), jobs);
    }

    #[tokio::test]
    async fn a_rescue_that_was_cut_off_is_begun_again() {
        let house = House::new().await;
        let job = house.accept().await;
        let epoch = house.queue.epoch().await.unwrap();

        push_all(&house.ledger, &house.queue, NAME).await.unwrap();
        assert_ne!(house.ledger.epoch(NAME).await.unwrap().as_ref(), Some(&epoch));
        rescue(&house.ledger, &house.queue, NAME, &mut None)
            .await
            .unwrap();

        assert_eq!(house.ledger.epoch(NAME).await.unwrap(), Some(epoch));
        assert_eq!(house.queue.fetch(10).await.unwrap(), [job], "once, not twice");
    }

    #[tokio::test]
    async fn a_queue_that_has_lost_nothing_is_left_alone() {
        let house = House::new().await;
        let mut known = None;
        rescue(&house.ledger, &house.queue, NAME, &mut known)
            .await
            .unwrap();
        house.accept().await;

        rescue(&house.ledger, &house.queue, NAME, &mut known)
            .await
            .unwrap();

        assert_eq!(house.queue.fetch(10).await.unwrap(), []);
    }
}
