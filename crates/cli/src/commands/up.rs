use posthaste_jobs::Queue;

use crate::config::Settings;
use crate::failure::Failure;
use crate::service::{self, Plan, Role};

/// Runs ingress and workers in one process.
pub(crate) async fn run(settings: Settings) -> Result<(), Failure> {
    service::run(
        Plan {
            role: Role::Up,
            queues: Queue::ALL.to_vec(),
            concurrency: None,
            probes: None,
        },
        settings,
    )
    .await
}
