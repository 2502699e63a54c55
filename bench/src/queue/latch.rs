use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How long nothing may be handled before the rest counts as lost: longer than a lease.
const PATIENCE: Duration = Duration::from_secs(30);

/// Counts handled jobs up to a goal, and notes when the first and the last came.
#[derive(Debug)]
pub(crate) struct Latch {
    goal: usize,
    handled: AtomicUsize,
    first: OnceLock<Instant>,
    last: watch::Sender<Option<Instant>>,
}

impl Latch {
    /// Makes one that opens at `goal`.
    pub(crate) fn new(goal: usize) -> Self {
        Self {
            goal,
            handled: AtomicUsize::new(0),
            first: OnceLock::new(),
            last: watch::Sender::new(None),
        }
    }

    /// Counts one.
    pub(crate) fn count(&self) {
        let handled = self.handled.fetch_add(1, Ordering::Relaxed) + 1;
        if handled == 1 {
            // Only who counts the first sets it.
            let _ = self.first.set(Instant::now());
        }
        if handled == self.goal {
            self.last.send_replace(Some(Instant::now()));
        }
    }

    /// Waits until all have been handled, and returns when the first and the last were.
    pub(crate) async fn opened(&self) -> anyhow::Result<(Instant, Instant)> {
        let mut last = self.last.subscribe();
        let mut before = 0;
        loop {
            let opened = timeout(PATIENCE, last.wait_for(Option::is_some)).await;
            if let (Ok(Ok(last)), Some(first)) = (opened, self.first.get())
                && let Some(last) = *last
            {
                return Ok((*first, last));
            }
            let handled = self.handled.load(Ordering::Relaxed);
            ensure!(
                handled > before,
                "only {handled} of {} jobs were handled, and nothing more comes",
                self.goal
            );
            before = handled;
        }
    }

    /// Fails if more were handled than there were.
    pub(crate) fn ensure_none_twice(&self) -> anyhow::Result<()> {
        let handled = self.handled.load(Ordering::Relaxed);
        ensure!(
            handled == self.goal,
            "{} jobs were handled {handled} times",
            self.goal
        );
        Ok(())
    }
}
