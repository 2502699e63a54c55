use std::sync::Arc;

use posthaste_jobs::Clock;
use posthaste_queue::Queue;
use posthaste_store::Ledger;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::body::Budget;
use crate::downstream::{Downstream, Stores};
use crate::pusher::{Pusher, push_all};
use crate::readiness::{Duty, Readiness};
use crate::rejections::Rejections;
use crate::router::{Shared, router};
use crate::server::Server;
use crate::{Catalog, Config};

/// The HTTP server of the ingress, with all that it needs.
pub struct Ingress {
    /// Section `[http]`.
    pub config: Config,
    /// Sources and routes; each request sees the latest.
    pub catalog: watch::Receiver<Arc<Catalog>>,
    /// Where events are committed.
    pub ledger: Ledger,
    /// Where their jobs are pushed.
    pub queue: Queue,
    /// What time it is.
    pub clock: Clock,
    /// What `/readyz` answers for.
    pub duty: Duty,
}

impl Ingress {
    /// Serves until `soft`, then finishes the requests under way, until `hard` at the latest.
    ///
    /// When it returns, no connection is open and no task is left.
    pub async fn serve(self, listener: TcpListener, soft: CancellationToken, hard: CancellationToken) {
        let stores = Stores {
            ledger: self.ledger,
            queue: self.queue,
        };
        let house = House {
            config: self.config,
            catalog: self.catalog,
            clock: self.clock,
            downstream: Arc::new(stores),
            duty: self.duty,
        };
        house.serve(listener, soft, hard).await;
    }
}

/// An ingress whose rooms behind it may be others, in tests.
pub(crate) struct House {
    pub(crate) config: Config,
    pub(crate) catalog: watch::Receiver<Arc<Catalog>>,
    pub(crate) clock: Clock,
    pub(crate) downstream: Arc<dyn Downstream>,
    pub(crate) duty: Duty,
}

impl House {
    pub(crate) async fn serve(self, listener: TcpListener, soft: CancellationToken, hard: CancellationToken) {
        let Self {
            config,
            catalog,
            clock,
            downstream,
            duty,
        } = self;
        let (pusher, accepted) = Pusher::new();
        // It ends with the last connection that may hand something in.
        let mut pushing =
            AbortOnDropHandle::new(TaskTracker::new().spawn(push_all(Arc::clone(&downstream), accepted)));
        let rejections = Arc::new(Rejections::default());
        let shared = Arc::new(Shared {
            budget: Budget::new(config.max_body_in_flight.as_u64()),
            config: config.clone(),
            catalog,
            clock,
            readiness: Arc::new(Readiness::new(Arc::clone(&downstream), duty)),
            downstream,
            pusher,
            rejections: Arc::clone(&rejections),
        });
        let server = Server::new(&config, router(shared));
        tokio::select! {
            () = server.run(listener, soft, hard.clone()) => {}
            never = rejections.flush_for_ever() => match never {},
        }
        tokio::select! {
            _ = &mut pushing => {}
            () = hard.cancelled() => {
                pushing.abort();
                let _ = pushing.await;
            }
        }
        rejections.flush();
    }
}
