//! Pushes jobs that the queue may not hold: accepted, but not claimed in time; or replayed.
//!
//! Pushing is idempotent, so it does not matter that most of them are in the queue already, nor that
//! several processes do this at once.

use std::time::Duration;

use posthaste_jobs::JobId;
use posthaste_queue::Queue;
use posthaste_store::Ledger;
use tokio_util::sync::CancellationToken;

use crate::outage::Outage;

/// How often the relay looks. A replay waits this long at most.
const PERIOD: Duration = Duration::from_millis(500);
/// Jobs a look.
const BATCH: u32 = 500;

/// Relays until `stop`.
pub(crate) async fn run(ledger: &Ledger, queue: &Queue, stop: &CancellationToken) {
    let outage = Outage::new("relay");
    let mut wait = PERIOD;
    while stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
        wait = match relay(ledger, queue).await {
            Ok(more) => {
                outage.over();
                if more { Duration::ZERO } else { PERIOD }
            }
            Err(error) => outage.failed(error.as_ref(), rand::random()),
        };
    }
}

/// Pushes one batch; tells whether there may be more.
async fn relay(ledger: &Ledger, queue: &Queue) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    let due = ledger.unrelayed(BATCH).await?;
    if due.is_empty() {
        return Ok(false);
    }
    let jobs: Vec<(JobId, Duration)> = due.iter().map(|due| (due.job, due.wait)).collect();
    queue.push(&jobs).await?;
    ledger.relayed(&due).await?;
    Ok(due.len() == BATCH as usize)
}
