use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use posthaste_jobs::JobId;
use posthaste_store::{Lease, Ledger};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::outage::Outage;

/// How long a claim lasts unless it is renewed: what a killed worker's job waits at most.
pub(crate) const LEASE: Duration = Duration::from_secs(10);
/// How often leases are renewed: two renewals may fail before one runs out.
const RENEWAL: Duration = Duration::from_secs(3);

/// Prolongs the leases of what runs in this process, from a task of its own, so that no busy handler
/// can starve it.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    held: Mutex<HashMap<JobId, Lease>>,
}

impl Keeper {
    /// Keeps `lease` until [`Keeper::release`].
    pub(crate) fn hold(&self, lease: Lease) {
        self.held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(lease.job, lease);
    }

    /// Lets go of `lease`, unless the job has been claimed anew since.
    pub(crate) fn release(&self, lease: Lease) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.get(&lease.job) == Some(&lease) {
            held.remove(&lease.job);
        }
    }

    fn leases(&self) -> Vec<Lease> {
        self.held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .copied()
            .collect()
    }

    /// Renews until `stop`.
    pub(crate) async fn run(&self, ledger: &Ledger, stop: &CancellationToken) {
        let outage = Outage::new("keeper");
        let mut wait = RENEWAL;
        while stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_some() {
            let leases = self.leases();
            if leases.is_empty() {
                continue;
            }
            wait = match ledger.renew(&leases, LEASE).await {
                Ok(lost) => {
                    outage.over();
                    for lease in lost {
                        self.release(lease);
                        // Most often the job has just been settled and is about to let go, so this is no
                        // warning. A lease that is truly lost is told of when the job ends.
                        debug!(job.id = %lease.job, "a lease is over");
                    }
                    RENEWAL
                }
                Err(error) => outage.failed(Instant::now(), &error, rand::random()).min(RENEWAL),
            };
        }
    }
}
