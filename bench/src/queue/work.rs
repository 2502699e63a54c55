use std::sync::Arc;

use posthaste_jobs::JobId;
use posthaste_queue::Ack;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::latch::Latch;
use super::ledger::Desk;

/// What a worker does with each job.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// Nothing but counting it.
    Nothing(Arc<Latch>),
    /// Claims and settles it, and does nothing in between.
    Settling(Arc<Latch>, Arc<Desk>),
    /// Tells when it began.
    Telling(mpsc::UnboundedSender<Instant>),
}

impl Work {
    /// Does it.
    pub(crate) async fn run(&self, job: JobId) -> Ack {
        match self {
            Self::Nothing(latch) => latch.count(),
            Self::Settling(latch, desk) => {
                let ack = desk.work(job).await;
                if ack != Ack::Done {
                    return ack;
                }
                latch.count();
            }
            Self::Telling(begun) => {
                // Nobody listens any more only at the end.
                let _ = begun.send(Instant::now());
            }
        }
        Ack::Done
    }
}
