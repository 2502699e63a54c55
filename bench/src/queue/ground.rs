use std::time::Duration;

use anyhow::Context as _;
use posthaste_jobs::{Clock, JobId, Lane};
use posthaste_queue::{Config, Entry, Queue, Timing};
use tokio::time::Instant;

use super::options::{Engine, Options};
use crate::redis::{Persistence, Redis};
use crate::scratch::Scratch;

/// Ids in one push, as the relay has them.
pub(crate) const PUSH: usize = 500;

/// A queue with what it needs: the ground for one figure.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) queue: Queue,
    config: Config,
    // Dropped in this order: the servers, then their folder.
    redis: Option<Redis>,
    scratch: Scratch,
}

impl Ground {
    /// Starts the server that `engine` needs, and opens a queue on it.
    pub(crate) async fn start(options: &Options, engine: Engine) -> anyhow::Result<Self> {
        let scratch = Scratch::new(&options.dir, false)?;
        let redis = match engine {
            Engine::Local => None,
            Engine::Redis => Some(Redis::start(&scratch, Persistence::EverySecond).await?),
        };
        let url = redis.as_ref().map_or_else(|| "local:".to_owned(), Redis::url);
        let config = Config { url };
        Ok(Self {
            queue: open(&config)?,
            config,
            redis,
            scratch,
        })
    }

    /// Returns the queue as another process has it, where another process can.
    pub(crate) fn elsewhere(&self) -> anyhow::Result<Queue> {
        match self.redis {
            Some(_) => open(&self.config),
            None => Ok(self.queue.clone()),
        }
    }

    /// Returns the server.
    pub(crate) fn redis(&self) -> anyhow::Result<&Redis> {
        self.redis.as_ref().context("this queue is on no server")
    }

    /// Returns the folder that goes when this is dropped.
    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Pushes batch after batch, each when the one before is in, and returns how long that took.
    pub(crate) async fn push(&self, jobs: &[JobId]) -> anyhow::Result<Duration> {
        let start = Instant::now();
        for batch in jobs.chunks(PUSH) {
            let entries: Vec<Entry> = batch.iter().map(|job| Entry::due(*job, Lane::Normal)).collect();
            self.queue.push(&entries).await?;
        }
        Ok(start.elapsed())
    }
}

/// Makes ids in the order in which jobs come: one after the other, though all are made in a moment.
pub(crate) fn ids(count: usize, clock: &Clock) -> Vec<JobId> {
    let mut ids: Vec<JobId> = (0..count).map(|_| JobId::new(clock(), rand::random())).collect();
    ids.sort_unstable();
    ids
}

fn open(config: &Config) -> anyhow::Result<Queue> {
    Ok(Queue::open_as(config, "bench", Timing::default())?)
}
