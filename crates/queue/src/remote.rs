mod access;
mod cluster;
mod connection;
mod health;
mod inspector;
mod keys;
mod link;
mod listener;
mod scripts;
mod sentinels;
mod servers;

use std::sync::Arc;
use std::time::Duration;

use posthaste_jobs::{JobId, Lane};
use redis::FromRedisValue;
use tokio::sync::Notify;
use tracing::warn;

use crate::engine::{Ending, Grant, Promoted, STEP, Verdict};
use crate::{Entry, Probe, QueueError, Survey};

use health::Health;
use inspector::Inspector;
use keys::Keys;
use link::{Link, Request};
pub(crate) use servers::Servers;

/// The engine on Redis: one server, the master that sentinels name, or a cluster. All clocks are the server's.
///
/// No trouble of the server is an outcome here, only a wait: each call fails within one time-out, and while the server
/// is away calls fail at once, but for one now and then that tries.
pub(crate) struct Remote {
    servers: Arc<Servers>,
    keys: Keys,
    lease: Duration,
    health: Arc<Health>,
    inspector: Arc<Inspector>,
    /// For workers: fetch, acknowledge, push.
    work: Link,
    /// For the keeper, so that busy workers do not delay a renewal.
    keep: Link,
}

impl Remote {
    /// Does not connect yet: the first call does.
    pub(crate) fn new(servers: Servers, name: &str, lease: Duration, wake: Arc<Notify>) -> Self {
        let health = Arc::new(Health::new(wake));
        let (servers, keys) = (Arc::new(servers), Keys::of(name));
        let inspector = Arc::new(Inspector::new(Arc::clone(&servers), &keys));
        let link = || Link::new(Arc::clone(&servers), Arc::clone(&health), Arc::clone(&inspector));
        Self {
            work: link(),
            keep: link(),
            keys,
            lease,
            health,
            inspector,
            servers,
        }
    }

    pub(crate) async fn push(&self, entries: &[Entry]) -> Result<Vec<JobId>, QueueError> {
        let keys = &self.keys;
        let mut push = scripts::PUSH.on(keys.lanes.iter().chain([
            &keys.scheduled,
            &keys.leased,
            &keys.epoch,
            &keys.sequence,
        ]));
        push.arg(&keys.wake).arg(draw_epoch());
        for entry in entries {
            push.arg(entry.job.to_string())
                .arg(millis(entry.wait))
                .arg(number(entry.lane));
        }
        let leased: Vec<Vec<u8>> = self.work.call("push", Request::Script(&push)).await?;
        Ok(leased.iter().filter_map(|member| read_id(member)).collect())
    }

    pub(crate) async fn epoch(&self) -> Result<String, QueueError> {
        let mut epoch = scripts::EPOCH.on([&self.keys.epoch]);
        epoch.arg(draw_epoch());
        self.work.call("read the epoch", Request::Script(&epoch)).await
    }

    pub(crate) async fn survey(&self) -> Result<Survey, QueueError> {
        let keys = &self.keys;
        let survey = scripts::SURVEY.on(keys.lanes.iter().chain([
            &keys.scheduled,
            &keys.leased,
            &keys.fetched,
            &keys.paused,
            &keys.grants,
        ]));
        let (counts, oldest, fetched, paused, held): ([u64; 6], i64, i64, bool, bool) =
            self.work.call("survey", Request::Script(&survey)).await?;
        let [high, normal, retry, low, scheduled, leased] = counts;
        let age = |millis| u64::try_from(millis).ok().map(Duration::from_millis);
        Ok(Survey {
            lanes: [high, normal, retry, low],
            scheduled,
            leased,
            oldest: age(oldest),
            fetched: age(fetched),
            paused,
            held,
        })
    }

    pub(crate) async fn set_paused(&self, paused: bool) -> Result<(), QueueError> {
        let mut pause = scripts::PAUSE.on([&self.keys.paused]);
        pause.arg(&self.keys.wake).arg(u8::from(paused));
        self.work.call("pause", Request::Script(&pause)).await
    }

    pub(crate) async fn probe(&self) -> Result<Probe, QueueError> {
        if self.inspector.last().is_some_and(|last| last.evicts()) {
            // Somebody may have mended it.
            self.work.renew().await;
        }
        let probe = scripts::PROBE.on([&self.keys.fetched]);
        let () = self.work.call("take a write", Request::Script(&probe)).await?;
        Ok(Probe {
            survey: self.survey().await?,
            server: self.inspector.last(),
        })
    }

    pub(crate) async fn fetch(&self, at_most: usize) -> Result<Grant, QueueError> {
        let keys = &self.keys;
        let mut fetch = scripts::FETCH.on(keys.lanes.iter().chain([
            &keys.leased,
            &keys.grants,
            &keys.sequence,
            &keys.fetched,
            &keys.paused,
        ]));
        fetch.arg(at_most.min(STEP)).arg(millis(self.lease));
        // As bytes: what others put here need not be text, and must not keep us from the ids beside it.
        let (number, members): (u64, Vec<Vec<u8>>) = self.work.call("fetch", Request::Script(&fetch)).await?;
        let mut jobs = Vec::with_capacity(members.len());
        for member in members {
            match read_id(&member) {
                Some(job) => jobs.push(job),
                None => self.forget(&member).await?,
            }
        }
        Ok(Grant { number, jobs })
    }

    /// Drops what is no id of ours, so that it does not come back each time its lease runs out.
    async fn forget(&self, member: &[u8]) -> Result<(), QueueError> {
        // Not the member itself: it is of any length, and may be somebody's secret.
        warn!(
            queue.member_bytes = member.len(),
            "dropped something from the queue that is no job id"
        );
        let mut remove = redis::cmd("ZREM");
        remove.arg(&self.keys.leased).arg(member);
        let _removed: u64 = self
            .work
            .call("drop what is no id", Request::Command(&remove))
            .await?;
        Ok(())
    }

    pub(crate) async fn acknowledge(&self, endings: &[Ending]) -> Result<(), QueueError> {
        let keys = &self.keys;
        let mut ack = scripts::ACKNOWLEDGE.on(keys.lanes.iter().chain([
            &keys.scheduled,
            &keys.leased,
            &keys.grants,
            &keys.sequence,
        ]));
        ack.arg(&keys.wake).arg(number(Lane::Retry));
        for ending in endings {
            ack.arg(ending.job.to_string()).arg(ending.grant);
            match ending.verdict {
                Verdict::Done => ack.arg("done"),
                Verdict::Back => ack.arg("back"),
                Verdict::Again(wait) => ack.arg(millis(wait)),
            };
        }
        let refused: u64 = self.work.call("acknowledge", Request::Script(&ack)).await?;
        if refused > 0 {
            warn!(
                queue.refused = refused,
                "acknowledged too late: other workers have taken these jobs"
            );
        }
        Ok(())
    }

    pub(crate) async fn promote(&self) -> Result<Promoted, QueueError> {
        let keys = &self.keys;
        let mut promote = scripts::PROMOTE.on(keys.lanes.iter().chain([&keys.scheduled, &keys.sequence]));
        promote.arg(&keys.wake).arg(STEP);
        let (moved, next): (usize, i64) = self.keep.call("promote", Request::Script(&promote)).await?;
        Ok(Promoted {
            moved,
            next: u64::try_from(next).ok().map(Duration::from_millis),
        })
    }

    pub(crate) async fn recover(&self) -> Result<bool, QueueError> {
        let keys = &self.keys;
        let mut recover = scripts::RECOVER.on([&keys.leased, &keys.grants, &keys.lanes[0], &keys.sequence]);
        recover.arg(&keys.wake).arg(STEP);
        let (moved, more): (u64, bool) = self.keep.call("recover", Request::Script(&recover)).await?;
        if moved > 0 {
            warn!(queue.recovered = moved, "took back jobs whose leases ran out");
        }
        Ok(more)
    }

    pub(crate) async fn renew(&self, grants: &[u64]) -> Result<Vec<u64>, QueueError> {
        let mut renew = scripts::RENEW.on([&self.keys.grants]);
        renew.arg(millis(self.lease)).arg(grants);
        self.keep.call("renew", Request::Script(&renew)).await
    }

    /// Wakes idle workers when others push. Runs for ever.
    pub(crate) async fn listen(&self, wake: &Notify) {
        listener::listen(&self.servers, &self.keys.wake, &self.health, wake).await;
    }
}

impl Link {
    async fn call<T: FromRedisValue>(
        &self,
        operation: &'static str,
        request: Request<'_>,
    ) -> Result<T, QueueError> {
        let value = self.send(operation, request).await?;
        redis::from_redis_value(value).map_err(|source| QueueError::Refused {
            operation,
            source: source.into(),
        })
    }
}

/// Reads an id, but only as we write it: `acknowledge` names it by its text.
fn read_id(member: &[u8]) -> Option<JobId> {
    let text = std::str::from_utf8(member).ok()?;
    text.parse::<JobId>().ok().filter(|job| job.to_string() == text)
}

/// How scripts call a lane: their tables begin at 1.
fn number(lane: Lane) -> usize {
    lane as usize + 1
}

/// An epoch must never come twice, so it is chance, not time.
fn draw_epoch() -> String {
    crate::queue::draw_epoch(rand::random())
}

/// Rounded up: an id is never due early.
fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000))
        .unwrap_or(u64::MAX)
        .min(LONGEST)
}

/// A century, in milliseconds: due times stay whole numbers in a zset's score.
const LONGEST: u64 = 100 * 365 * 24 * 3600 * 1000;
