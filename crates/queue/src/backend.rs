use std::any::Any;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use apalis::layers::catch_panic::CatchPanicLayer;
use apalis_core::backend::BackendConfig;
use apalis_core::backend::finalize::Ephemeral;
use apalis_core::backend::future::BoxSyncFuture;
use apalis_core::backend::persistence::{Persisted, State, TaskPersistLayer};
use apalis_core::error::AbortError;
use apalis_core::task::Task;
use apalis_core::worker::context::WorkerContext;
use futures::FutureExt;
use posthaste_jobs::JobId;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tower::layer::util::Stack;

use crate::keeper::LAST_DELIVERY;
use crate::persistence::JobPersistence;
use crate::queue::Inner;
use crate::{Ack, AckCodec};

/// What stands around each handler: a panic becomes an error, and the outcome becomes an event for the queue.
pub type HandlerLayer = Stack<
    CatchPanicLayer<fn(&Box<dyn Any + Send>) -> AbortError, AbortError>,
    TaskPersistLayer<AckCodec, Ack>,
>;

/// Events that apalis buffers before it makes handlers wait, divided by 4. During a stop it drains none until the last
/// handler has ended, so a bound that handlers can reach would make them wait for each other for ever.
const EVENT_BUFFER: usize = 1 << 20;

/// How often apalis calls a heartbeat that does nothing.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// A source of `Task<JobId>` for one apalis worker. Made by [`Queue::backend`](crate::Queue::backend).
///
/// Dropped before it was closed, it gives back all ids that its worker has not acknowledged.
pub struct Backend {
    persisted: Persisted<JobPersistence>,
    config: usize,
    wakeups: Wakeups,
    /// Set when there may be something to fetch; without it an idle worker would ask the server at each acknowledgement.
    more: Arc<AtomicBool>,
    worker: Option<WorkerContext>,
    last_delivery: Option<BoxSyncFuture<()>>,
    closed: bool,
}

impl Backend {
    pub(crate) fn new(queue: Arc<Inner>, holder: u64, batch: usize) -> Self {
        let more = Arc::new(AtomicBool::new(true));
        Self {
            wakeups: Wakeups::new(&queue),
            config: batch,
            more: Arc::clone(&more),
            persisted: Persisted::new(JobPersistence {
                queue,
                holder,
                batch,
                more,
            }),
            worker: None,
            last_delivery: None,
            closed: false,
        }
    }
}

impl apalis_core::backend::Backend for Backend {
    type Task = Task<JobId>;
    type Error = Infallible;

    fn poll_ready(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), Infallible>> {
        self.worker.get_or_insert_with(|| worker.clone());
        self.persisted.poll_ready(cx, worker, HEARTBEAT)
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        worker: &WorkerContext,
    ) -> Poll<Option<Result<Task<JobId>, Infallible>>> {
        loop {
            if self.wakeups.poll(cx) {
                self.more.store(true, Ordering::Release);
            }
            if matches!(self.persisted.state(), State::Ready) && !self.more.swap(false, Ordering::AcqRel) {
                return Poll::Pending;
            }
            if let Poll::Ready(task) = self.persisted.poll_next(cx, worker) {
                return Poll::Ready(task);
            }
            if !matches!(self.persisted.state(), State::Ready) {
                return Poll::Pending;
            }
            // The fetch came back empty. Acknowledgements that came meanwhile woke this worker in vain, for nothing is
            // drained during a fetch, and nothing wakes it for them again.
            let Ok(()) = ready!(self.persisted.poll_ready(cx, worker, HEARTBEAT));
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), Infallible>> {
        if let State::Fetch(fetch) = self.persisted.state_mut() {
            let Ok(tasks) = ready!(fetch.poll_unpin(cx));
            *self.persisted.state_mut() = State::Buffered(tasks.into());
        }
        if self.last_delivery.is_none() {
            let Ok(()) = ready!(self.persisted.poll_close(cx, worker));
        }
        let queue = Arc::clone(&self.persisted.queue);
        let last_delivery = self.last_delivery.get_or_insert_with(|| {
            async move { queue.deliver_within(LAST_DELIVERY).await }
                .boxed()
                .into()
        });
        ready!(last_delivery.poll_unpin(cx));
        self.closed = true;
        Poll::Ready(Ok(()))
    }
}

impl BackendConfig for Backend {
    type Args = JobId;
    type Id = JobId;
    type Kind = Ephemeral;
    type Config = usize;
    type Layer = HandlerLayer;

    fn config(&self) -> &usize {
        &self.config
    }

    fn middleware(&mut self, _: &mut WorkerContext) -> HandlerLayer {
        let events = self
            .persisted
            .layer(AckCodec, EVENT_BUFFER)
            .persist_results(true)
            .lock_tasks(false);
        Stack::new(CatchPanicLayer::new(), events)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        let (false, Some(worker)) = (self.closed, self.worker.take()) else {
            return;
        };
        if let State::Buffered(tasks) = self.persisted.state_mut() {
            let tasks = std::mem::take(tasks);
            self.persisted.give_back(tasks);
        }
        *self.persisted.state_mut() = State::Ready;
        // Drains the events: the first poll of what handles them notes them all.
        let _ = self
            .persisted
            .poll_close(&mut Context::from_waker(Waker::noop()), &worker);
        let queue = &self.persisted.queue;
        queue.held.abandon(self.persisted.holder);
        queue.undelivered.notify_one();
    }
}

/// Tells a worker when to look for work.
///
/// apalis' own `PollWith` polls its strategy once and does not poll it again when it was ready, so the waker is not
/// registered while a backend that answers at once finds nothing: the next wake-up is lost.
struct Wakeups {
    queue: Arc<Inner>,
    woken: Pin<Box<OwnedNotified>>,
    /// Made at the first poll: a timer needs a runtime.
    look: Option<Interval>,
}

impl Wakeups {
    fn new(queue: &Arc<Inner>) -> Self {
        Self {
            woken: Box::pin(Arc::clone(&queue.wake).notified_owned()),
            queue: Arc::clone(queue),
            look: None,
        }
    }

    /// Says whether to look, and has `cx` woken at the next reason to.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let mut look = false;
        while self.woken.as_mut().poll(cx).is_ready() {
            self.woken.set(Arc::clone(&self.queue.wake).notified_owned());
            look = true;
        }
        let every = self.queue.timing.look;
        let interval = self.look.get_or_insert_with(|| {
            let mut interval = interval(every);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        });
        while interval.poll_tick(cx).is_ready() {
            look = true;
        }
        look
    }
}
