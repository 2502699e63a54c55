use std::sync::Arc;
use std::time::Duration;

use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::connection::Connection;
use super::health::Health;
use super::inspector::Inspector;
use super::scripts::Call;
use super::servers::Servers;
use crate::QueueError;

/// How long a call may take, connecting included.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// One connection that is made when it is needed, and made anew after it broke.
///
/// `ConnectionManager` does less here: it keeps a connection after a time-out or a `READONLY`, so one to a host that
/// vanished or was demoted is never replaced, and while it connects its callers wait for all its retries.
pub(crate) struct Link {
    servers: Arc<Servers>,
    health: Arc<Health>,
    inspector: Arc<Inspector>,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    connection: Option<Connection>,
    /// How many connections there have been.
    number: u64,
}

/// What is asked of the server.
pub(crate) enum Request<'a> {
    Script(&'a Call),
    Command(&'a redis::Cmd),
}

impl Link {
    pub(crate) fn new(servers: Arc<Servers>, health: Arc<Health>, inspector: Arc<Inspector>) -> Self {
        Self {
            servers,
            health,
            inspector,
            current: Mutex::default(),
        }
    }

    /// Sends `request` and returns the answer, or fails within [`TIMEOUT`].
    pub(crate) async fn send(
        &self,
        operation: &'static str,
        request: Request<'_>,
    ) -> Result<Value, QueueError> {
        self.health.may_ask(Instant::now())?;
        let mut used = None;
        let outcome = timeout(TIMEOUT, async {
            let (number, mut connection) = self.connection().await?;
            used = Some(number);
            let answer = request.send(&mut connection).await;
            answer.map_err(|source| self.servers.judge(operation, source))
        })
        .await;

        let error = match outcome {
            Ok(Ok(value)) => {
                self.health.succeeded(Instant::now());
                return Ok(value);
            }
            Ok(Err(error @ QueueError::Refused { .. })) if used.is_some() => {
                self.health.refused(&error, Instant::now());
                return Err(error);
            }
            Ok(Err(error)) => error,
            Err(_) => QueueError::Timeout(TIMEOUT),
        };
        if let Some(number) = used {
            self.discard(number).await;
        }
        self.health.failed(&error, Instant::now(), rand::random());
        Err(error)
    }

    /// Lets go of the connection, so that the next call looks at the server anew.
    pub(crate) async fn renew(&self) {
        self.current.lock().await.connection = None;
    }

    async fn connection(&self) -> Result<(u64, Connection), QueueError> {
        let mut current = self.current.lock().await;
        if let Some(connection) = &current.connection {
            return Ok((current.number, connection.clone()));
        }
        // Time is kept by `send`, over connecting and asking together.
        let mut connection = self.servers.connect().await?;
        self.inspector.inspect(&mut connection).await?;
        current.number += 1;
        current.connection = Some(connection.clone());
        Ok((current.number, connection))
    }

    /// Lets go of a connection, unless another caller has replaced it.
    async fn discard(&self, number: u64) {
        let mut current = self.current.lock().await;
        if current.number == number {
            current.connection = None;
        }
    }
}

impl Request<'_> {
    async fn send(&self, connection: &mut Connection) -> RedisResult<Value> {
        match self {
            Self::Command(command) => connection.ask(command).await,
            Self::Script(call) => match connection.ask(call.by_name()).await {
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    connection.ask(&call.by_text()).await
                }
                outcome => outcome,
            },
        }
    }
}

/// Tells a server that cannot serve from one that will not.
pub(crate) fn is_outage(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Io | ErrorKind::Parse => true,
        // No sentinel is of use, or no node of the cluster.
        ErrorKind::MasterNameNotFoundBySentinel
        | ErrorKind::EmptySentinelList
        | ErrorKind::ClusterConnectionNotFound => true,
        ErrorKind::Server(kind) => matches!(
            kind,
            ServerErrorKind::BusyLoading
                | ServerErrorKind::ReadOnly
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::TryAgain
                // The client of a cluster follows these, until it gives up.
                | ServerErrorKind::Moved
                | ServerErrorKind::Ask
        ),
        // A script of somebody else holds the server up.
        _ => error.code() == Some("BUSY"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_cannot_serve_is_told_from_one_that_will_not() {
        let said = |kind| RedisError::from((ErrorKind::Server(kind), "said"));

        assert!(is_outage(&said(ServerErrorKind::ReadOnly)));
        assert!(is_outage(&said(ServerErrorKind::BusyLoading)));
        assert!(is_outage(&said(ServerErrorKind::MasterDown)));
        assert!(is_outage(&said(ServerErrorKind::ClusterDown)));
        assert!(is_outage(&said(ServerErrorKind::TryAgain)));
        assert!(is_outage(&said(ServerErrorKind::Moved)));
        assert!(!is_outage(&said(ServerErrorKind::ResponseError)));
        assert!(!is_outage(&said(ServerErrorKind::NoPerm)));
        assert!(is_outage(&RedisError::from(std::io::Error::other("reset"))));
        let extension = |code: &str| redis::make_extension_error(code.to_owned(), None);
        assert!(is_outage(&extension("BUSY")));
        assert!(!is_outage(&extension("WHATEVER")));
    }
}
