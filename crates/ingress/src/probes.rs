use std::sync::Arc;

use posthaste_queue::Queue;
use posthaste_store::Ledger;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::Config;
use crate::downstream::Stores;
use crate::readiness::{Duty, Readiness};
use crate::router::probes;
use crate::server::Server;

/// The HTTP server of a process that takes nothing in: it answers `/healthz` and `/readyz`.
pub struct Probes {
    /// The limits of a request; its `listen` means nothing here.
    pub config: Config,
    /// What has to be there.
    pub ledger: Ledger,
    /// What has to be there.
    pub queue: Queue,
    /// What `/readyz` answers for.
    pub duty: Duty,
}

impl Probes {
    /// Serves until `soft`, then finishes the requests under way, until `hard` at the latest.
    pub async fn serve(self, listener: TcpListener, soft: CancellationToken, hard: CancellationToken) {
        let stores = Stores {
            ledger: self.ledger,
            queue: self.queue,
        };
        let readiness = Readiness::new(Arc::new(stores), self.duty);
        let router = probes(Arc::new(readiness));
        Server::new(&self.config, router).run(listener, soft, hard).await;
    }
}
