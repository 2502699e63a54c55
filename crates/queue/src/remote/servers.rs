use std::time::Duration;

use redis::aio::PubSub;
use redis::{Client, ErrorKind, RedisError, RedisResult, ServerErrorKind};

use super::access::{Access, trust};
use super::cluster::Cluster;
use super::connection::Connection;
use super::link::{TIMEOUT, is_outage};
use super::sentinels::Sentinels;
use crate::redis_url::{Kind, RedisUrl};
use crate::{OpenError, QueueError};

/// How long one of several that are asked in turn may take: a part of [`TIMEOUT`].
pub(crate) const PATIENCE: Duration = TIMEOUT.checked_div(4).expect("4 is not zero");

/// The servers that a URL names. Which of them has the queue is found out at each connection.
pub(crate) enum Servers {
    Single(Box<Client>),
    Sentinel(Box<Sentinels>),
    Cluster(Box<Cluster>),
}

impl Servers {
    /// Connects nowhere; it reads the file of authorities, if there is one.
    pub(crate) fn of(url: RedisUrl) -> Result<Self, OpenError> {
        let access = Access {
            login: url.login,
            database: url.database,
            tls: url.tls.then(|| trust(url.ca)).transpose()?,
        };
        match url.kind {
            Kind::Single => access.client(&url.hosts[0]).map(Box::new).map(Self::Single),
            Kind::Sentinel { master, login } => {
                let theirs = Access {
                    login,
                    database: 0,
                    tls: access.tls.clone(),
                };
                Ok(Self::Sentinel(Box::new(Sentinels::new(
                    url.hosts, master, theirs, access,
                ))))
            }
            Kind::Cluster => Cluster::new(url.hosts, access).map(Box::new).map(Self::Cluster),
        }
        .map_err(OpenError::Malformed)
    }

    /// Connects to whichever has the queue at this moment.
    pub(crate) async fn connect(&self) -> RedisResult<Connection> {
        match self {
            Self::Single(client) => client
                .get_multiplexed_async_connection_with_config(&Access::without_limits())
                .await
                .map(Connection::Server),
            Self::Sentinel(sentinels) => Ok(Connection::Server(sentinels.find_master().await?.connection)),
            Self::Cluster(cluster) => cluster.connect().await.map(Connection::Cluster),
        }
    }

    /// Opens a connection on which the queue's messages are heard.
    pub(crate) async fn messages(&self) -> RedisResult<PubSub> {
        match self {
            Self::Single(client) => client.get_async_pubsub().await,
            Self::Sentinel(sentinels) => sentinels.find_master().await?.client.get_async_pubsub().await,
            Self::Cluster(cluster) => cluster.messages().await,
        }
    }

    /// Tells what an answer to `operation` means for the queue.
    pub(crate) fn judge(&self, operation: &'static str, source: RedisError) -> QueueError {
        if let Some(mismatch) = self.mismatch(&source) {
            return mismatch;
        }
        if is_outage(&source) {
            return QueueError::Unavailable(source);
        }
        QueueError::Refused { operation, source }
    }

    /// Tells whether `error` says that the servers are of another kind than the URL.
    fn mismatch(&self, error: &RedisError) -> Option<QueueError> {
        let says = |text| error.detail().is_some_and(|detail| detail.contains(text));
        match (self, error.kind()) {
            (Self::Single(_) | Self::Sentinel(_), ErrorKind::Server(ServerErrorKind::Moved)) => {
                Some(QueueError::Mismatch {
                    found: "a node of a cluster",
                    hint: "redis-cluster://HOST:PORT",
                })
            }
            (Self::Cluster(_), ErrorKind::Server(_)) if says("cluster support disabled") => {
                Some(QueueError::Mismatch {
                    found: "a server on its own, of no cluster",
                    hint: "redis://HOST:PORT",
                })
            }
            _ => None,
        }
    }
}
