use std::time::Duration;

use posthaste_jobs::JobId;

use crate::local::Local;
use crate::remote::Remote;
use crate::{Entry, Probe, QueueError, Survey};

/// How many ids one step of an engine touches at most.
pub(crate) const STEP: usize = 500;

/// Ids that were fetched together, and share a lease.
#[derive(Default)]
pub(crate) struct Grant {
    /// Its name; a later grant has a higher one.
    pub(crate) number: u64,
    /// What it covers.
    pub(crate) jobs: Vec<JobId>,
}

/// The end of one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) job: JobId,
    /// Under which grant it was held.
    pub(crate) grant: u64,
    pub(crate) verdict: Verdict,
}

/// What becomes of an id when its lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is forgotten.
    Done,
    /// It is due again after this long, among the retries.
    Again(Duration),
    /// It was never begun, and goes back to the head of the line, before all lanes.
    Back,
}

/// What a promotion found.
pub(crate) struct Promoted {
    /// How many became ready.
    pub(crate) moved: usize,
    /// When the next is due.
    pub(crate) next: Option<Duration>,
}

/// Where a queue is kept. Both do the same, and are held to it by one list of tests.
pub(crate) enum Engine {
    Local(Box<Local>),
    Remote(Box<Remote>),
}

impl Engine {
    /// Adds ids that are not here yet; returns those that are leased.
    pub(crate) async fn push(&self, entries: &[Entry]) -> Result<Vec<JobId>, QueueError> {
        let mut leased = Vec::new();
        for step in entries.chunks(STEP) {
            leased.extend(match self {
                Self::Local(local) => local.push(step),
                Self::Remote(remote) => remote.push(step).await?,
            });
            tokio::task::yield_now().await;
        }
        Ok(leased)
    }

    pub(crate) async fn epoch(&self) -> Result<String, QueueError> {
        match self {
            Self::Local(local) => Ok(local.epoch()),
            Self::Remote(remote) => remote.epoch().await,
        }
    }

    pub(crate) async fn survey(&self) -> Result<Survey, QueueError> {
        match self {
            Self::Local(local) => Ok(local.survey()),
            Self::Remote(remote) => remote.survey().await,
        }
    }

    pub(crate) async fn set_paused(&self, paused: bool) -> Result<(), QueueError> {
        match self {
            Self::Local(local) => {
                local.set_paused(paused);
                Ok(())
            }
            Self::Remote(remote) => remote.set_paused(paused).await,
        }
    }

    pub(crate) async fn probe(&self) -> Result<Probe, QueueError> {
        match self {
            Self::Local(local) => Ok(Probe {
                survey: local.survey(),
                server: None,
            }),
            Self::Remote(remote) => remote.probe().await,
        }
    }

    /// Leases `at_most` ids: the lanes take turns, and each gives its first. None while the queue is paused.
    pub(crate) async fn fetch(&self, at_most: usize) -> Result<Grant, QueueError> {
        match self {
            Self::Local(local) => Ok(local.fetch(at_most)),
            Self::Remote(remote) => remote.fetch(at_most).await,
        }
    }

    /// Ends leases, at most [`STEP`]; one that another grant holds stays as it is. Safe to repeat.
    pub(crate) async fn acknowledge(&self, endings: &[Ending]) -> Result<(), QueueError> {
        match self {
            Self::Local(local) => {
                local.acknowledge(endings);
                Ok(())
            }
            Self::Remote(remote) => remote.acknowledge(endings).await,
        }
    }

    /// Makes due ids ready, each in its lane, at most [`STEP`].
    pub(crate) async fn promote(&self) -> Result<Promoted, QueueError> {
        match self {
            Self::Local(local) => Ok(local.promote()),
            Self::Remote(remote) => remote.promote().await,
        }
    }

    /// Takes back leases that ran out, and says whether there may be more.
    pub(crate) async fn recover(&self) -> Result<bool, QueueError> {
        match self {
            Self::Local(local) => {
                local.recover();
                Ok(false)
            }
            Self::Remote(remote) => remote.recover().await,
        }
    }

    /// Extends grants, and returns those that are gone.
    pub(crate) async fn renew(&self, grants: &[u64]) -> Result<Vec<u64>, QueueError> {
        let mut gone = Vec::new();
        for step in grants.chunks(STEP) {
            match self {
                Self::Local(local) => gone.extend(local.renew(step)),
                Self::Remote(remote) => gone.extend(remote.renew(step).await?),
            }
        }
        Ok(gone)
    }
}
