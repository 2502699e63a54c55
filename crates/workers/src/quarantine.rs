use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// Sees to it that a job that may take the process down with it runs by itself, so that no other pays for it.
///
/// One a process, shared by all its queues. Who waits is served in turn: jobs that waited while one ran by itself
/// all begin before the next does.
#[derive(Clone, Debug, Default)]
pub struct Quarantine(Arc<RwLock<()>>);

impl Quarantine {
    /// Waits until no job runs by itself, and keeps any from doing so.
    pub(crate) async fn beside_others(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.0).read_owned().await
    }

    /// Waits until no job runs, and keeps any from beginning.
    pub(crate) async fn alone(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.0).write_owned().await
    }
}
