//! A ledger in a file, a queue in the process, and a desk beside them, for the tests of this crate.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posthaste_jobs::{Clock, Ending, EventId, JobId, Kind, Lane, Priority, Timestamp};
use posthaste_outbound::Endpoints;
use posthaste_queue::{Entry, Queue};
use posthaste_store::{Claim, Claimed, Company, Headers, Ledger, NewEvent, NewJob, Settled, Settlement};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::keeper::Keeper;
use crate::progress::Progress;
use crate::quarantine::Quarantine;

pub(crate) const NAME: posthaste_jobs::Queue = posthaste_jobs::Queue::Webhooks;

pub(crate) struct House {
    pub(crate) ledger: Ledger,
    pub(crate) queue: Queue,
    folder: Arc<TempDir>,
}

impl House {
    pub(crate) async fn new() -> Self {
        Self::in_folder(Arc::new(tempfile::tempdir().unwrap())).await
    }

    /// Another process on the same ledger, with a queue of its own.
    pub(crate) async fn beside(&self) -> Self {
        Self::in_folder(Arc::clone(&self.folder)).await
    }

    async fn in_folder(folder: Arc<TempDir>) -> Self {
        let config = posthaste_store::Config {
            url: format!("sqlite:{}", folder.path().join("ledger.db").display()),
            ..posthaste_store::Config::default()
        };
        let ledger = Ledger::open(&config).await.unwrap();
        ledger.migrate().await.unwrap();
        Self {
            ledger,
            queue: empty_queue().await,
            folder,
        }
    }

    pub(crate) async fn lose_the_queue(&mut self) {
        self.queue = empty_queue().await;
    }

    /// Accepts a delivery to an endpoint that no configuration has.
    pub(crate) async fn accept(&self) -> JobId {
        self.accept_with(r#"{"endpoint":"nowhere"}"#).await
    }

    pub(crate) async fn accept_with(&self, payload: &str) -> JobId {
        let now = Timestamp::from_millis(1_796_095_930_123);
        let job = JobId::new(now, rand::random());
        let event = NewEvent {
            id: EventId::new(now, rand::random()),
            source: "shop".to_owned(),
            provider_id: job.to_string(),
            event_type: None,
            headers: Headers::default(),
            body: Bytes::new(),
            jobs: vec![NewJob {
                id: job,
                kind: Kind::WebhookDelivery,
                payload: payload.to_owned(),
                endpoint: None,
                wait: Duration::ZERO,
                priority: Priority::Normal,
            }],
        };
        self.ledger.accept(event).await.unwrap();
        job
    }

    /// Accepts one, and pushes it.
    pub(crate) async fn push(&self) -> JobId {
        let job = self.accept().await;
        self.queue.push(&[Entry::due(job, Lane::Normal)]).await.unwrap();
        job
    }

    /// Claims a job as soon as it is to be had.
    pub(crate) async fn start(&self, job: JobId, worker: &str, lease: Duration) -> Claimed {
        loop {
            let claim = self
                .ledger
                .claim(job, worker, lease, Company::Alone)
                .await
                .unwrap();
            match claim {
                Claim::Started(claimed) => return *claimed,
                Claim::InProgress(wait) | Claim::NotDue(wait) => tokio::time::sleep(wait).await,
                other => panic!("the job cannot be claimed: {other:?}"),
            }
        }
    }

    /// Claims a job for workers that are never heard of again.
    pub(crate) async fn lose_workers(&self, job: JobId, count: usize) {
        for number in 0..count {
            self.start(job, &format!("lost-{number}"), Duration::ZERO).await;
        }
        // A lease of no time ends within the next millisecond.
        tokio::time::sleep(Duration::from_millis(3)).await;
    }

    /// Runs a job to this ending.
    pub(crate) async fn run(&self, job: JobId, ending: Ending) {
        let claimed = self.start(job, "worker", Duration::from_secs(10)).await;
        let settlement = Settlement {
            lease: claimed.lease,
            ending,
            attempt: None,
            error: None,
        };
        assert_eq!(self.ledger.settle(settlement).await.unwrap(), Settled::Written);
    }

    pub(crate) fn desk(&self, clock: Clock) -> Desk {
        Desk {
            ledger: self.ledger.clone(),
            endpoints: Endpoints::new(Vec::new()).unwrap(),
            policies: watch::channel(Arc::new(HashMap::new())).1,
            clock,
            worker: "desk".into(),
            keeper: Arc::new(Keeper::default()),
            quarantine: Quarantine::default(),
            progress: Progress::default(),
            abandon: CancellationToken::new(),
        }
    }
}

async fn empty_queue() -> Queue {
    Queue::open(&posthaste_queue::Config::default(), NAME)
        .await
        .unwrap()
}
