use redis::aio::MultiplexedConnection;
use redis::cluster_async::ClusterConnection;
use redis::{Cmd, RedisResult, Value};

/// A connection to a server, or to all nodes of a cluster. Cheap to clone; clones share it.
#[derive(Clone)]
pub(crate) enum Connection {
    Server(MultiplexedConnection),
    /// Sends each command to the node that has the slot of its first key.
    Cluster(ClusterConnection),
}

impl Connection {
    pub(crate) async fn ask(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Server(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => command.query_async(connection).await,
        }
    }
}
