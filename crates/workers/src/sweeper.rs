//! Pushes every unfinished job once in a while, in case the queue has lost a part of what it held.
//!
//! A server that evicts keys, or a hand that deletes some, leaves the epoch as it was, and the rescuer
//! sees nothing. Pushing is idempotent, so a sweep changes nothing where nothing is missing; but it reads
//! all unfinished jobs, so of all processes only one at a time does it, whichever asks the ledger first.

use std::time::Duration;

use posthaste_queue::Queue;
use posthaste_store::Ledger;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::outage::Outage;
use crate::rescuer::{Trouble, push_all};

/// How often everything unfinished is pushed.
const SWEEP: Duration = Duration::from_secs(300);
/// How often a process asks whether it is time.
const PERIOD: Duration = Duration::from_secs(30);

/// Sweeps until `stop`. `name` is the queue's name in the ledger.
pub(crate) async fn run(
    ledger: &Ledger,
    queue: &Queue,
    name: posthaste_jobs::Queue,
    stop: &CancellationToken,
) {
    let outage = Outage::new("sweeper");
    let mut wait = PERIOD;
    while stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
        // A stop does not wait for the last page: the next sweep is for all of them.
        let Some(swept) = stop.run_until_cancelled(sweep(ledger, queue, name, SWEEP)).await else {
            return;
        };
        wait = match swept {
            Ok(()) => {
                outage.over();
                PERIOD
            }
            Err(error) => outage.failed(Instant::now(), error.as_ref(), rand::random()),
        };
    }
}

/// Pushes everything, if nobody has within `every`.
async fn sweep(
    ledger: &Ledger,
    queue: &Queue,
    name: posthaste_jobs::Queue,
    every: Duration,
) -> Result<(), Trouble> {
    if ledger.take_sweep(name, every).await? {
        push_all(ledger, queue, name).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use posthaste_jobs::Lane;
    use posthaste_queue::{Ack, Entry};

    use super::*;
    use crate::house::{House, NAME};

    #[tokio::test]
    async fn a_job_that_the_queue_alone_has_lost_comes_back_and_the_others_do_not_come_twice() {
        let house = House::new().await;
        let (lost, kept) = (house.accept().await, house.accept().await);
        let entries = [Entry::due(lost, Lane::Normal), Entry::due(kept, Lane::Normal)];
        house.queue.push(&entries).await.unwrap();
        assert_eq!(house.queue.fetch(1).await.unwrap(), [lost]);
        house.queue.acknowledge(&[(lost, Ack::Done)]).await.unwrap();

        sweep(&house.ledger, &house.queue, NAME, SWEEP).await.unwrap();

        assert_eq!(house.queue.fetch(10).await.unwrap(), [kept, lost]);
    }

    #[tokio::test]
    async fn of_all_processes_one_sweeps_each_time() {
        let house = House::new().await;
        let other = house.beside().await;
        sweep(&house.ledger, &house.queue, NAME, SWEEP).await.unwrap();
        house.accept().await;

        sweep(&other.ledger, &other.queue, NAME, SWEEP).await.unwrap();
        assert_eq!(other.queue.fetch(10).await.unwrap(), []);

        sweep(&other.ledger, &other.queue, NAME, Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(other.queue.fetch(10).await.unwrap().len(), 1);
    }
}
