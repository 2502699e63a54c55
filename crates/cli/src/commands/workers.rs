use posthaste_jobs::Queue;

use crate::config::Settings;
use crate::failure::Failure;
use crate::select::queue;
use crate::service::{self, Plan, Role};

/// Which jobs, and how many at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Queues to take jobs from, separated by commas; all when left out
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = queue)]
    queues: Vec<Queue>,
    /// Jobs at once, per queue, in place of workers.concurrency
    #[arg(long, value_name = "N")]
    concurrency: Option<usize>,
    /// Where to answer /healthz and /readyz, in place of workers.listen
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
}

/// Runs workers alone.
pub(crate) async fn run(args: Args, settings: Settings) -> Result<(), Failure> {
    service::run(
        Plan {
            role: Role::Workers,
            queues: chosen(args.queues),
            concurrency: args.concurrency,
            probes: args.listen,
        },
        settings,
    )
    .await
}

/// Returns each queue that was named once, or all.
fn chosen(named: Vec<Queue>) -> Vec<Queue> {
    if named.is_empty() {
        return Queue::ALL.to_vec();
    }
    Queue::ALL
        .into_iter()
        .filter(|queue| named.contains(queue))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_named_twice_is_worked_on_once() {
        assert_eq!(chosen(vec![Queue::Webhooks, Queue::Webhooks]), [Queue::Webhooks]);
        assert_eq!(chosen(Vec::new()), Queue::ALL);
    }
}
