//! Tells the queue what an operator has paused.
//!
//! The ledger keeps a pause, because a queue can lose its memory and the command line may not reach it (one
//! inside a process, or a Redis that is away). So a pause holds over restarts of everything. And each process
//! is on hold by itself while it lasts: a Redis that forgets the pause is filled again at once by the rescuer,
//! before it can be told.

use std::time::Duration;

use posthaste_queue::Queue;
use posthaste_store::Ledger;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::outage::Outage;
use crate::rescuer::Trouble;

/// How often the ledger is asked: how long a pause that the queue was not told of directly takes to hold.
const PERIOD: Duration = Duration::from_millis(500);

/// What was last told to the queue.
#[derive(Default)]
pub(crate) struct Pauser {
    told: Option<bool>,
}

impl Pauser {
    /// Mirrors until `stop`. `name` is the queue's name in the ledger.
    pub(crate) async fn run(
        mut self,
        ledger: &Ledger,
        queue: &Queue,
        name: posthaste_jobs::Queue,
        stop: &CancellationToken,
    ) {
        let outage = Outage::new("pauser");
        let mut wait = PERIOD;
        while stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
            wait = match self.mirror(ledger, queue, name).await {
                Ok(()) => {
                    outage.over();
                    PERIOD
                }
                Err(error) => outage.failed(Instant::now(), error.as_ref(), rand::random()),
            };
        }
    }

    /// Tells the queue once.
    pub(crate) async fn mirror(
        &mut self,
        ledger: &Ledger,
        queue: &Queue,
        name: posthaste_jobs::Queue,
    ) -> Result<(), Trouble> {
        let paused = ledger.is_paused(name).await?;
        queue.hold(paused);
        // A pause is told each time: the queue may have forgotten it.
        if paused || self.told != Some(false) {
            queue.set_paused(paused).await?;
        }
        if self.told != Some(paused) && (paused || self.told.is_some()) {
            let standing = if paused { "paused" } else { "resumed" };
            info!(queue = %name, "{standing}");
        }
        self.told = Some(paused);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::house::{House, NAME};

    #[tokio::test]
    async fn what_the_ledger_says_is_paused_is_not_handed_out_until_it_says_otherwise() {
        let house = House::new().await;
        let mut pauser = Pauser::default();
        let job = house.push().await;

        house.ledger.set_paused(NAME, true).await.unwrap();
        pauser.mirror(&house.ledger, &house.queue, NAME).await.unwrap();
        assert_eq!(house.queue.fetch(1).await.unwrap(), []);

        house.ledger.set_paused(NAME, false).await.unwrap();
        pauser.mirror(&house.ledger, &house.queue, NAME).await.unwrap();
        assert_eq!(house.queue.fetch(1).await.unwrap(), [job]);
    }

    #[tokio::test]
    async fn a_queue_that_forgets_a_pause_hands_out_nothing_and_is_told_again() {
        let house = House::new().await;
        let mut pauser = Pauser::default();
        house.ledger.set_paused(NAME, true).await.unwrap();
        pauser.mirror(&house.ledger, &house.queue, NAME).await.unwrap();
        house.queue.set_paused(false).await.unwrap();
        house.push().await;
        assert_eq!(house.queue.fetch(1).await.unwrap(), []);

        pauser.mirror(&house.ledger, &house.queue, NAME).await.unwrap();

        assert!(house.queue.survey().await.unwrap().paused);
    }

    #[tokio::test]
    async fn a_pause_that_ended_while_nobody_mirrored_ends_in_the_queue_too() {
        let house = House::new().await;
        house.queue.set_paused(true).await.unwrap();

        let mut pauser = Pauser::default();
        pauser.mirror(&house.ledger, &house.queue, NAME).await.unwrap();

        assert!(!house.queue.survey().await.unwrap().paused);
    }
}
