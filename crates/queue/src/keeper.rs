use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::QueueError;
use crate::engine::{Engine, STEP};
use crate::queue::Inner;

/// How long a stop tries to deliver the last acknowledgements.
pub(crate) const LAST_DELIVERY: Duration = Duration::from_secs(5);

/// How long a part of the keeper waits after a failure. Whether Redis is really asked again is decided below, with backoff.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Does what keeps a queue going, until `stop` is cancelled. Each part has a loop of its own, so that none waits for another.
pub(crate) async fn keep(queue: &Inner, stop: CancellationToken) {
    let parts = async {
        tokio::join!(
            promote(queue),
            recover(queue),
            renew(queue),
            deliver(queue),
            listen(queue)
        );
    };
    stop.run_until_cancelled(parts).await;
    queue.deliver_within(LAST_DELIVERY).await;
}

/// Makes due ids ready.
async fn promote(queue: &Inner) {
    loop {
        match queue.engine.promote().await {
            Ok(promoted) if promoted.moved == STEP => {}
            Ok(promoted) => sleep_until_due(queue, promoted.next).await,
            Err(_) => sleep(AFTER_FAILURE).await,
        }
    }
}

/// Returns when the next is due, or may be.
async fn sleep_until_due(queue: &Inner, next: Option<Duration>) {
    let sooner = queue.sooner.notified();
    match (&queue.engine, next) {
        (Engine::Local(_), None) => sooner.await,
        // It returns early or late, and both are good reasons to look.
        (Engine::Local(_), Some(next)) => drop(timeout(next, sooner).await),
        (Engine::Remote(_), next) => {
            sleep(next.unwrap_or(queue.timing.promote).min(queue.timing.promote)).await
        }
    }
}

/// Takes back leases that ran out.
async fn recover(queue: &Inner) {
    loop {
        match queue.engine.recover().await {
            Ok(true) => {}
            Ok(false) | Err(_) => sleep(queue.timing.recover).await,
        }
    }
}

/// Renews the leases of this process.
async fn renew(queue: &Inner) {
    loop {
        sleep(queue.timing.renew).await;
        while renew_once(queue).await.is_err() {
            sleep(AFTER_FAILURE).await;
        }
    }
}

async fn renew_once(queue: &Inner) -> Result<(), QueueError> {
    let gone = queue.engine.renew(&queue.held.grants()).await?;
    let lost = queue.held.lose(&gone);
    if lost > 0 {
        warn!(
            queue.name = queue.name,
            queue.lost = lost,
            "leases ran out while their jobs were running"
        );
    }
    Ok(())
}

/// Delivers how leases ended, those first that did not arrive at first.
async fn deliver(queue: &Inner) {
    loop {
        queue.undelivered.notified().await;
        while queue.deliver().await.is_err() {
            sleep(AFTER_FAILURE).await;
        }
    }
}

/// Wakes workers when other processes push. The engine in the process wakes them itself.
async fn listen(queue: &Inner) {
    if let Engine::Remote(remote) = &queue.engine {
        remote.listen(&queue.wake).await;
    }
}
