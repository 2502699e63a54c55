use crate::config::Settings;
use crate::failure::Failure;
use crate::service::{self, Plan, Role};

/// Runs an ingress alone.
pub(crate) async fn run(settings: Settings) -> Result<(), Failure> {
    service::run(
        Plan {
            role: Role::Ingress,
            queues: Vec::new(),
            concurrency: None,
            probes: None,
        },
        settings,
    )
    .await
}
