//! Tells the queue of accepted jobs.
//!
//! Promises nothing: the event is committed before its jobs come here, and what is not pushed is
//! found by the relay. So nobody waits for a push, and a failed one is not repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use posthaste_jobs::chain;
use posthaste_queue::Entry;
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::downstream::Downstream;

/// Jobs that wait to be pushed while the queue is slow.
const WAITING: usize = 16_384;
/// Most jobs in one push: what the queue takes in one step.
const BATCH: usize = 500;

/// Where accepted jobs are handed in.
#[derive(Debug)]
pub(crate) struct Pusher {
    sender: mpsc::Sender<Entry>,
    overflowing: AtomicBool,
}

impl Pusher {
    /// Makes the handing-in side, and what [`push_all`] takes from.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Entry>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let pusher = Self {
            sender,
            overflowing: AtomicBool::new(false),
        };
        (pusher, receiver)
    }

    /// Hands jobs in without waiting. The log says once when there is no room, until there is again.
    pub(crate) fn hand_in(&self, entries: impl Iterator<Item = Entry>) {
        for entry in entries {
            let full = self.sender.try_send(entry).is_err();
            if self.overflowing.load(Ordering::Relaxed) != full
                && self.overflowing.swap(full, Ordering::Relaxed) != full
                && full
            {
                warn!("jobs are accepted faster than the queue takes them; the relay will push the rest");
            }
        }
    }
}

/// Pushes in batches until all who hand in are gone.
pub(crate) async fn push_all(downstream: Arc<dyn Downstream>, mut entries: mpsc::Receiver<Entry>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut failing = false;
    while entries.recv_many(&mut batch, BATCH).await > 0 {
        let pushed = downstream.push(&batch).await;
        batch.clear();
        match (pushed, failing) {
            (Ok(()), true) => {
                failing = false;
                info!("the queue takes jobs again");
            }
            (Err(error), false) => {
                failing = true;
                warn!(
                    error = chain(error.as_ref()),
                    "the queue takes no jobs; the relay will push them"
                );
            }
            (Ok(()), false) | (Err(_), true) => {}
        }
    }
}
