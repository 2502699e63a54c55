use std::error::Error;
use std::pin::Pin;

use posthaste_queue::{Entry, Probe, Queue};
use posthaste_store::{Accepted, Ledger, LedgerError, NewEvent};

/// A future that answers once and can be sent between threads.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why the queue did not take something. All of it means the same here: the relay will push.
pub(crate) type QueueTrouble = Box<dyn Error + Send + Sync>;

/// What the ingress needs of the rooms behind it.
///
/// The ledger and the queue in a process that serves; in tests, whatever fails when it is told to.
pub(crate) trait Downstream: Send + Sync + 'static {
    /// Commits an event with its jobs.
    fn accept(&self, event: NewEvent) -> Answer<'_, Result<Accepted, LedgerError>>;
    /// Tells the queue of jobs.
    fn push<'a>(&'a self, entries: &'a [Entry]) -> Answer<'a, Result<(), QueueTrouble>>;
    /// Asks whether events can be accepted.
    fn check_ledger(&self) -> Answer<'_, Result<(), LedgerError>>;
    /// Asks whether jobs can be pushed, and whether anybody takes them.
    fn check_queue(&self) -> Answer<'_, Result<Probe, QueueTrouble>>;
}

/// The ledger and the queue.
pub(crate) struct Stores {
    pub(crate) ledger: Ledger,
    pub(crate) queue: Queue,
}

impl Downstream for Stores {
    fn accept(&self, event: NewEvent) -> Answer<'_, Result<Accepted, LedgerError>> {
        Box::pin(self.ledger.accept(event))
    }

    fn push<'a>(&'a self, entries: &'a [Entry]) -> Answer<'a, Result<(), QueueTrouble>> {
        Box::pin(async {
            self.queue.push(entries).await?;
            Ok(())
        })
    }

    fn check_ledger(&self) -> Answer<'_, Result<(), LedgerError>> {
        Box::pin(self.ledger.check())
    }

    fn check_queue(&self) -> Answer<'_, Result<Probe, QueueTrouble>> {
        Box::pin(async { Ok(self.queue.probe().await?) })
    }
}
