//! Pushes jobs that the queue may not hold: accepted, but not claimed in time; or replayed.
//!
//! Pushing is idempotent, so it does not matter that most of them are in the queue already, nor that
//! several processes do this at once.

use std::collections::HashSet;
use std::time::Duration;

use posthaste_jobs::JobId;
use posthaste_queue::{Entry, Queue};
use posthaste_store::{Due, Ledger};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::outage::Outage;

/// How often the relay looks. A replay waits this long at most.
const PERIOD: Duration = Duration::from_millis(500);
/// Jobs a look.
const BATCH: u32 = 500;

/// Relays until `stop`. `name` is the queue's name in the ledger.
pub(crate) async fn run(
    ledger: &Ledger,
    queue: &Queue,
    name: posthaste_jobs::Queue,
    stop: &CancellationToken,
) {
    let outage = Outage::new("relay");
    let mut wait = PERIOD;
    while stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
        wait = match relay(ledger, queue, name).await {
            Ok(more) => {
                outage.over();
                if more { Duration::ZERO } else { PERIOD }
            }
            Err(error) => outage.failed(Instant::now(), error.as_ref(), rand::random()),
        };
    }
}

/// Pushes one batch; tells whether there may be more.
async fn relay(
    ledger: &Ledger,
    queue: &Queue,
    name: posthaste_jobs::Queue,
) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    let mut due = ledger.unrelayed(name, BATCH).await?;
    if due.is_empty() {
        return Ok(false);
    }
    let full = due.len() == BATCH as usize;
    let entries: Vec<Entry> = due.iter().map(entry).collect();
    let leased: HashSet<JobId> = queue.push(&entries).await?.into_iter().collect();
    // One that was replayed right after its settlement may still be leased, and is forgotten with the
    // acknowledgement of the run before: it keeps its mark, and is pushed again until it is in.
    due.retain(|due| !leased.contains(&due.job));
    ledger.relayed(&due).await?;
    Ok(full && !due.is_empty())
}

/// What the queue should hold of a job that is due.
pub(crate) fn entry(due: &Due) -> Entry {
    Entry {
        job: due.job,
        wait: due.wait,
        lane: due.lane,
    }
}

#[cfg(test)]
mod tests {
    use posthaste_jobs::{DeadReason, Ending, Lane};
    use posthaste_queue::Ack;
    use posthaste_store::JobFilter;

    use super::*;
    use crate::house::{House, NAME};

    #[tokio::test]
    async fn a_job_replayed_before_its_last_run_was_acknowledged_is_relayed() {
        let house = House::new().await;
        let (ledger, queue) = (&house.ledger, &house.queue);
        let job = house.accept().await;
        queue.push(&[Entry::due(job, Lane::Normal)]).await.unwrap();
        queue.fetch(1).await.unwrap();
        house.run(job, Ending::Dead(DeadReason::Permanent)).await;
        ledger.replay(&JobFilter::default(), 1).await.unwrap();

        relay(ledger, queue, NAME).await.unwrap();
        queue.acknowledge(&[(job, Ack::Done)]).await.unwrap();
        assert_eq!(queue.fetch(1).await.unwrap(), [], "it was not leased after all");
        relay(ledger, queue, NAME).await.unwrap();

        assert_eq!(queue.fetch(1).await.unwrap(), [job]);
    }

    #[tokio::test]
    async fn a_job_that_never_reached_the_queue_is_relayed() {
        let house = House::new().await;
        let job = house.accept().await;
        house.run(job, Ending::Dead(DeadReason::Permanent)).await;
        house.ledger.replay(&JobFilter::default(), 1).await.unwrap();
        assert_eq!(house.queue.fetch(1).await.unwrap(), []);

        relay(&house.ledger, &house.queue, NAME).await.unwrap();

        assert_eq!(house.queue.fetch(1).await.unwrap(), [job]);
        assert!(house.ledger.unrelayed(NAME, 10).await.unwrap().is_empty());
    }
}
