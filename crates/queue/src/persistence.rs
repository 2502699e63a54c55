use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use apalis_core::backend::TaskResult;
use apalis_core::backend::persistence::{Persistence, TaskEvent};
use apalis_core::task::Task;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::task_id::TaskId;
use apalis_core::worker::context::WorkerContext;
use posthaste_jobs::{JobId, Lane};
use tracing::error;

use crate::engine::{STEP, Verdict};
use crate::queue::Inner;
use crate::{Ack, Entry};

/// The queue as apalis sees it. No method returns an error: to apalis an error is the end of a worker, and to us it is a
/// wait.
#[derive(Clone)]
pub struct JobPersistence {
    pub(crate) queue: Arc<Inner>,
    pub(crate) holder: u64,
    pub(crate) batch: usize,
    /// Set when there may be more to fetch.
    pub(crate) more: Arc<AtomicBool>,
}

impl JobPersistence {
    /// Notes at once that these were never begun. Nothing is lost if nobody waits for the delivery.
    pub(crate) fn give_back(&self, tasks: impl IntoIterator<Item = Task<JobId>>) {
        for task in tasks {
            if let Some((job, grant)) = task.task_id().and_then(read_task_id) {
                self.queue.held.end(job, grant, Verdict::Back);
            }
        }
    }

    /// Notes at once how these ended.
    fn note(&self, events: Vec<TaskEvent<Ack>>) {
        for event in events {
            if let TaskEvent::Complete(TaskResult { task_id, result, .. }) = event
                && let Some((job, grant)) = read_task_id(&task_id)
            {
                self.queue.held.end(job, grant, self.verdict(job, result));
            }
        }
    }

    fn verdict(&self, job: JobId, result: Result<Ack, String>) -> Verdict {
        result.map_or_else(
            // Why is the handler's to log: what it says may hold what must not be in a log.
            |_| {
                error!(job.id = %job, "the handler failed or panicked instead of answering; the job comes back");
                Verdict::Again(self.queue.timing.failed)
            },
            Verdict::from,
        )
    }
}

impl Persistence for JobPersistence {
    type Compact = JobId;
    type Response = Ack;
    type Error = Infallible;

    async fn register(&mut self, _: &WorkerContext) -> Result<(), Infallible> {
        Ok(())
    }

    /// Leases are kept alive by the keeper: apalis calls this only between fetches.
    async fn heartbeat(&mut self, _: &WorkerContext) -> Result<(), Infallible> {
        Ok(())
    }

    /// An empty batch when Redis is away: a fetch that waits would hold up every acknowledgement.
    async fn fetch_next(&mut self, _: &WorkerContext) -> Result<Vec<Task<JobId>>, Infallible> {
        // They are delivered beside this, by the keeper; one that cannot keep up is waited for.
        if self.queue.held.waiting() > STEP && self.queue.deliver().await.is_err() {
            return Ok(Vec::new());
        }
        let Ok(grant) = self.queue.fetch(self.batch).await else {
            return Ok(Vec::new());
        };
        self.queue.held.take(&grant, self.holder);
        if grant.jobs.len() == self.batch {
            self.more.store(true, Ordering::Release);
        }
        let task = |job| {
            TaskBuilder::new(job)
                .task_id(write_task_id(job, grant.number))
                .build()
        };
        Ok(grant.jobs.iter().copied().map(task).collect())
    }

    async fn reenqueue_abandoned(
        &mut self,
        tasks: Vec<Task<JobId>>,
        _: &WorkerContext,
    ) -> Result<u64, Infallible> {
        let count = tasks.len() as u64;
        self.give_back(tasks);
        // What fails to arrive waits in the outbox, and the keeper is told.
        let _ = self.queue.deliver().await;
        Ok(count)
    }

    /// Leaves the delivery to the keeper: a fetch that waited for it would leave the server idle in between.
    async fn handle_events(
        &mut self,
        events: Vec<TaskEvent<Ack>>,
        _: &WorkerContext,
    ) -> Result<(), Infallible> {
        self.note(events);
        self.queue.undelivered.notify_one();
        Ok(())
    }

    async fn push_tasks(&mut self, tasks: Vec<Task<JobId>>) -> Result<(), Infallible> {
        let entries: Vec<_> = tasks
            .into_iter()
            .map(|task| Entry::due(task.args, Lane::Normal))
            .collect();
        while self.queue.engine.push(&entries).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }
}

/// apalis hands back nothing of a task but its id, so the grant travels in it.
fn write_task_id(job: JobId, grant: u64) -> TaskId {
    TaskId::from_string(format!("{job}.{grant}"))
}

fn read_task_id(id: &TaskId) -> Option<(JobId, u64)> {
    let (job, grant) = id.as_string()?.split_once('.')?;
    Some((job.parse().ok()?, grant.parse().ok()?))
}
