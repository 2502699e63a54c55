//! Pushes every unfinished job again when the queue has lost its memory, and, rarely, to be sure.
//!
//! The queue names its memory by an epoch. The ledger remembers the epoch for which everything was
//! pushed; when the two differ, everything is pushed once more. A queue that lost only a part (an
//! eviction, a failover) keeps its epoch: the sweep is for that.

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
/// How often everything unfinished is pushed, whatever the epoch says.
const SWEEP: Duration = Duration::from_secs(300);
/// Jobs a page.
const PAGE: u32 = 1000;

type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// Rescues until `stop`. `name` is the queue's name in the ledger.
pub(crate) async fn run(
    ledger: &Ledger,
    queue: &Queue,
    name: posthaste_jobs::Queue,
    stop: &CancellationToken,
) {
    let outage = Outage::new("rescuer");
    let mut swept = Instant::now();
    let mut known = None;
    let mut wait = Duration::ZERO;
    while stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
        let sweep = swept.elapsed() >= SWEEP;
        // A stop does not wait for the last page: the next rescuer begins again.
        let Some(rescued) = stop
            .run_until_cancelled(rescue(ledger, queue, name, &mut known, sweep))
            .await
        else {
            return;
        };
        wait = match rescued {
            Ok(()) => {
                outage.over();
                if sweep {
                    swept = Instant::now();
                }
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
    sweep: bool,
) -> Result<(), Trouble> {
    let epoch = queue.epoch().await?;
    // What this process has seen to counts before what the ledger says: two processes that each have a
    // queue of their own would take turns there for ever.
    let forgot = known.as_ref() != Some(&epoch) && ledger.epoch(name).await?.as_ref() != Some(&epoch);
    if !(forgot || sweep) {
        *known = Some(epoch);
        return Ok(());
    }
    let pushed = push_all(ledger, queue, name).await?;
    if forgot {
        // Only after the last page: a rescuer that dies on the way is followed by one that begins again.
        ledger.set_epoch(name, &epoch).await?;
        info!(queue = %name, jobs = pushed, "pushed every unfinished job into a queue that held none of them");
    }
    *known = Some(epoch);
    Ok(())
}

/// Pushes every unfinished job, page by page; returns how many.
async fn push_all(ledger: &Ledger, queue: &Queue, name: posthaste_jobs::Queue) -> Result<usize, Trouble> {
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
