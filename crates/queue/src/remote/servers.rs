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

/// What the client says when a server refuses `SELECT`; there is no kind of error for it.
const NO_DATABASE: &str = "refused to switch database";

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
    pub(crate) async fn connect(&self) -> Result<Connection, QueueError> {
        match self {
            Self::Single(client) => client
                .get_multiplexed_async_connection_with_config(&Access::without_limits())
                .await
                .map(Connection::Server),
            Self::Sentinel(sentinels) => sentinels
                .find_master()
                .await
                .map(|master| Connection::Server(master.connection)),
            Self::Cluster(cluster) => cluster.connect().await.map(Connection::Cluster),
        }
        .map_err(|source| self.judge("take a connection", source))
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
        if is_login(&source) {
            return QueueError::Login(source);
        }
        if source.to_string().contains(NO_DATABASE) {
            let number = self.database();
            return QueueError::NoDatabase { number, source };
        }
        if is_outage(&source) {
            return QueueError::Unavailable(source);
        }
        QueueError::Refused { operation, source }
    }

    fn database(&self) -> i64 {
        match self {
            Self::Single(client) => client.get_connection_info().redis_settings().db(),
            Self::Sentinel(sentinels) => sentinels.database(),
            Self::Cluster(_) => 0,
        }
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

/// Tells whether a server wants to know who we are, or does not believe it. One that was not told takes no command of more
/// than ten words, and says so in words of its own.
fn is_login(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || matches!(error.code(), Some("NOAUTH" | "WRONGPASS"))
        || error
            .detail()
            .is_some_and(|detail| detail.contains("unauthenticated"))
}
