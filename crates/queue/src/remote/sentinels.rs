use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{Client, ErrorKind, RedisError, RedisResult, Value};
use tokio::time::timeout;

use super::access::Access;
use super::servers::PATIENCE;
use crate::redis_url::Host;

/// Those who know which server is the master.
pub(crate) struct Sentinels {
    hosts: Vec<Host>,
    master: String,
    /// Of the sentinels themselves.
    sentinels: Access,
    servers: Access,
    /// The sentinel that was right last: it is the first to be asked.
    first: AtomicUsize,
}

/// A server that was the master a moment ago.
pub(crate) struct Master {
    pub(crate) client: Client,
    pub(crate) connection: MultiplexedConnection,
}

impl Sentinels {
    pub(crate) fn new(hosts: Vec<Host>, master: String, sentinels: Access, servers: Access) -> Self {
        Self {
            hosts,
            master,
            sentinels,
            servers,
            first: AtomicUsize::new(0),
        }
    }

    /// Of the servers.
    pub(crate) fn database(&self) -> i64 {
        self.servers.database
    }

    /// Asks the sentinels in turn for the master, until one names a server that says so itself.
    ///
    /// A sentinel that was cut off, or has not heard yet, names one that was demoted.
    pub(crate) async fn find_master(&self) -> RedisResult<Master> {
        let mut last = None;
        let first = self.first.load(Ordering::Relaxed);
        for number in (first..first + self.hosts.len()).map(|number| number % self.hosts.len()) {
            match self.ask(&self.hosts[number]).await {
                Ok(master) => {
                    self.first.store(number, Ordering::Relaxed);
                    return Ok(master);
                }
                Err(error) => last = Some(error),
            }
            // Also if this is cut off before another answered.
            self.first.store(number + 1, Ordering::Relaxed);
        }
        Err(last.unwrap_or_else(|| RedisError::from((ErrorKind::EmptySentinelList, "no sentinel is known"))))
    }

    async fn ask(&self, sentinel: &Host) -> RedisResult<Master> {
        let host = within("a sentinel did not answer", self.named_by(sentinel)).await?;
        within(
            "the master that a sentinel named did not answer",
            self.confirm(&host),
        )
        .await
    }

    async fn named_by(&self, sentinel: &Host) -> RedisResult<Host> {
        let client = self.sentinels.client(sentinel)?;
        let mut connection = client
            .get_multiplexed_async_connection_with_config(&Access::without_limits())
            .await?;
        let named: Option<(String, u16)> = redis::cmd("SENTINEL")
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(&self.master)
            .query_async(&mut connection)
            .await?;
        let unknown = || {
            let description = "a sentinel knows no master of this name";
            RedisError::from((
                ErrorKind::MasterNameNotFoundBySentinel,
                description,
                self.master.clone(),
            ))
        };
        named.map(|(name, port)| Host { name, port }).ok_or_else(unknown)
    }

    /// Connects to `host` and has it say what it is. `HELLO` rather than `ROLE`: it takes no right.
    async fn confirm(&self, host: &Host) -> RedisResult<Master> {
        let client = self.servers.client(host)?;
        let mut connection = client
            .get_multiplexed_async_connection_with_config(&Access::without_limits())
            .await?;
        let said: HashMap<String, Value> = redis::cmd("HELLO").query_async(&mut connection).await?;
        let is_master = matches!(said.get("role"), Some(Value::BulkString(role)) if role == b"master");
        if !is_master {
            let at = format!("{}:{}", host.name, host.port);
            return Err(RedisError::from((
                ErrorKind::Io,
                "a sentinel named a server that is no master",
                at,
            )));
        }
        Ok(Master { client, connection })
    }
}

/// Keeps one that does not answer from using up the time for the others.
async fn within<T>(description: &'static str, step: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    timeout(PATIENCE, step)
        .await
        .unwrap_or_else(|_| Err(RedisError::from((ErrorKind::Io, description))))
}
