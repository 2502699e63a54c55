//! How a process is told to end: once softly, twice hard.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

/// What is added to the grace period before everything is cut off: the rooms end their own work by
/// then, and hand back what they hold.
const FAREWELL: Duration = Duration::from_secs(1);

/// Tells the rooms when to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shutdown {
    /// Take nothing more, finish what runs.
    pub(crate) soft: CancellationToken,
    /// Let go of what runs.
    pub(crate) hard: CancellationToken,
    ended: CancellationToken,
}

impl Shutdown {
    /// Listens for SIGTERM and SIGINT: the first ends softly, the second, or the end of `grace`, hard.
    ///
    /// # Errors
    ///
    /// The operating system refuses the handlers.
    pub(crate) fn listen(tracker: &TaskTracker, grace: Duration) -> io::Result<Self> {
        let shutdown = Self::default();
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let listening = shutdown.clone();
        tracker.spawn(async move { listening.follow(terminate, interrupt, grace).await });
        Ok(shutdown)
    }

    /// Everything has ended; nothing needs to be told any more.
    pub(crate) fn end(&self) {
        self.soft.cancel();
        self.ended.cancel();
    }

    async fn follow(&self, mut terminate: Signal, mut interrupt: Signal, grace: Duration) {
        tokio::select! {
            () = self.soft.cancelled() => {}
            _ = terminate.recv() => info!(signal = "SIGTERM", "stopping"),
            _ = interrupt.recv() => info!(signal = "SIGINT", "stopping"),
        }
        self.soft.cancel();
        tokio::select! {
            () = self.ended.cancelled() => return,
            () = tokio::time::sleep(grace.saturating_add(FAREWELL)) => warn!("the grace period is over"),
            _ = terminate.recv() => warn!(signal = "SIGTERM", "stopping at once"),
            _ = interrupt.recv() => warn!(signal = "SIGINT", "stopping at once"),
        }
        self.hard.cancel();
    }
}
