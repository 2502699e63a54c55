use std::collections::BTreeMap;

use anyhow::Context as _;

/// How the queue of the deliveries stands, as `posthaste queues list --json` tells it.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Standing {
    name: String,
    /// By state, as the ledger has them.
    jobs: BTreeMap<String, usize>,
    /// As the queue itself counts; `None`: it is inside a process, or away.
    engine: Option<Engine>,
}

#[derive(Debug, serde::Deserialize)]
struct Engine {
    ready: BTreeMap<String, usize>,
    scheduled: usize,
    leased: usize,
}

impl Standing {
    /// Finds the queue of the deliveries in what the command printed.
    pub(crate) fn read(json: &[u8]) -> anyhow::Result<Self> {
        let all: Vec<Self> = serde_json::from_slice(json).context("not the JSON of `queues list`")?;
        let webhooks = all.into_iter().find(|queue| queue.name == "webhooks");
        webhooks.context("there is no queue of that name")
    }

    /// Returns how many jobs a worker has claimed and not settled.
    pub(crate) fn running(&self) -> usize {
        self.jobs.get("running").copied().unwrap_or(0)
    }

    /// Returns how many jobs the queue holds; none while it is away.
    pub(crate) fn held(&self) -> usize {
        self.engine.as_ref().map_or(0, |engine| {
            engine.ready.values().sum::<usize>() + engine.scheduled + engine.leased
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_is_the_ledgers_count_and_what_is_held_the_queues() {
        let json = br#"[{"name":"emails","jobs":{"running":9},"engine":null},
            {"name":"webhooks","paused_at":null,"jobs":{"queued":1,"running":2},"oldest_due_ms":null,
             "engine":{"ready":{"high":1,"normal":2,"retry":3,"low":4},"scheduled":5,"leased":6,"last_fetch_ms":1}}]"#;

        let standing = Standing::read(json).unwrap();

        assert_eq!((standing.running(), standing.held()), (2, 21));
    }

    #[test]
    fn a_queue_that_is_away_holds_nothing() {
        let standing = Standing::read(br#"[{"name":"webhooks","jobs":{},"engine":null}]"#).unwrap();

        assert_eq!((standing.running(), standing.held()), (0, 0));
    }
}
