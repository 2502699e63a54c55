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
            Err(error) => outage.failed(Instant::now(), error.as_ref(), rand::random()),
        };
    }
}

/// Pushes one batch; tells whether there may be more.
async fn relay(ledger: &Ledger, queue: &Queue) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    let mut due = ledger.unrelayed(BATCH).await?;
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
    use bytes::Bytes;
    use posthaste_jobs::{DeadReason, Ending, EventId, Kind, Lane, Priority, Timestamp};
    use posthaste_queue::Ack;
    use posthaste_store::{Claim, Headers, JobFilter, NewEvent, NewJob, Settlement};

    use super::*;

    #[tokio::test]
    async fn a_job_replayed_before_its_last_run_was_acknowledged_is_relayed() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("ledger.db").display());
        let config = posthaste_store::Config {
            url,
            ..posthaste_store::Config::default()
        };
        let ledger = Ledger::open(&config).await.unwrap();
        ledger.migrate().await.unwrap();
        let config = posthaste_queue::Config::default();
        let queue = Queue::open(&config, posthaste_jobs::Queue::Webhooks)
            .await
            .unwrap();
        let job = JobId::new(Timestamp::from_millis(1), 1);
        let event = NewEvent {
            id: EventId::new(Timestamp::from_millis(1), 1),
            source: "shop".to_owned(),
            provider_id: "1".to_owned(),
            event_type: None,
            headers: Headers::default(),
            body: Bytes::new(),
            jobs: vec![NewJob {
                id: job,
                kind: Kind::WebhookDelivery,
                payload: "{}".to_owned(),
                endpoint: None,
                wait: Duration::ZERO,
                priority: Priority::Normal,
            }],
        };
        ledger.accept(event).await.unwrap();
        queue.push(&[Entry::due(job, Lane::Normal)]).await.unwrap();
        queue.fetch(1).await.unwrap();
        let Claim::Started(claimed) = ledger
            .claim(job, "worker", Duration::from_secs(10))
            .await
            .unwrap()
        else {
            panic!("the job cannot be claimed");
        };
        let settlement = Settlement {
            lease: claimed.lease,
            ending: Ending::Dead(DeadReason::Permanent),
            attempt: None,
            error: None,
        };
        ledger.settle(settlement).await.unwrap();
        ledger
            .replay(
                &JobFilter {
                    ids: vec![job],
                    ..JobFilter::default()
                },
                1,
            )
            .await
            .unwrap();

        relay(&ledger, &queue).await.unwrap();
        queue.acknowledge(&[(job, Ack::Done)]).await.unwrap();
        assert_eq!(queue.fetch(1).await.unwrap(), [], "it was not leased after all");
        relay(&ledger, &queue).await.unwrap();

        assert_eq!(queue.fetch(1).await.unwrap(), [job]);
    }
}
