use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::PubSub;
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::{ErrorKind, RedisError, RedisResult};
use tokio::time::timeout;

use super::access::Access;
use super::servers::PATIENCE;
use crate::redis_url::Host;

/// How often the client follows a redirection, or asks for the slots anew, before it says that it cannot.
const REDIRECTIONS: u32 = 3;

/// How long it waits before it asks anew. All of it together fits into one time-out.
const BETWEEN: Duration = Duration::from_millis(50);

/// A cluster, of which some nodes are known beforehand.
pub(crate) struct Cluster {
    client: ClusterClient,
    seeds: Vec<Host>,
    access: Access,
    /// The seed that answered last: it is the first to be asked.
    first: AtomicUsize,
}

impl Cluster {
    pub(crate) fn new(seeds: Vec<Host>, access: Access) -> RedisResult<Self> {
        let nodes = seeds
            .iter()
            .map(|host| access.info(host))
            .collect::<RedisResult<Vec<_>>>()?;
        let between = u64::try_from(BETWEEN.as_millis()).unwrap_or(u64::MAX);
        let mut client = ClusterClientBuilder::new(nodes)
            .retries(REDIRECTIONS)
            .min_retry_wait(between)
            .max_retry_wait(between)
            .connection_timeout(PATIENCE);
        if let Some(certificates) = &access.tls {
            client = client.certs(certificates.clone());
        }
        Ok(Self {
            client: client.build()?,
            seeds,
            access,
            first: AtomicUsize::new(0),
        })
    }

    pub(crate) async fn connect(&self) -> RedisResult<ClusterConnection> {
        self.client.get_async_connection().await
    }

    /// Opens a connection for messages to any seed: what is published anywhere in a cluster is heard everywhere.
    pub(crate) async fn messages(&self) -> RedisResult<PubSub> {
        let mut last = None;
        let first = self.first.load(Ordering::Relaxed);
        for number in (first..first + self.seeds.len()).map(|number| number % self.seeds.len()) {
            let client = self.access.client(&self.seeds[number])?;
            match timeout(PATIENCE, client.get_async_pubsub()).await {
                Ok(Ok(messages)) => {
                    self.first.store(number, Ordering::Relaxed);
                    return Ok(messages);
                }
                Ok(Err(error)) => last = Some(error),
                Err(_) => {}
            }
            // Also if this is cut off before another answered.
            self.first.store(number + 1, Ordering::Relaxed);
        }
        Err(last.unwrap_or_else(|| RedisError::from((ErrorKind::Io, "no node of the cluster answers"))))
    }
}
