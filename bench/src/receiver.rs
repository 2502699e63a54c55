use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::tally::Tally;
use crate::wire::Connection;

const DONE: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
const REFUSED: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";

/// An endpoint that takes every delivery at once and notes it. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct Receiver {
    listener: TcpListener,
}

impl Receiver {
    /// Opens a port; nothing is answered before `run`.
    pub(crate) async fn bind() -> anyhow::Result<Self> {
        Ok(Self {
            listener: TcpListener::bind("127.0.0.1:0").await?,
        })
    }

    /// Returns where deliveries are to be sent.
    pub(crate) fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Answers in the background for as long as the returned tasks live.
    pub(crate) fn run(self, tally: Arc<Tally>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                while connections.try_join_next().is_some() {}
                match self.listener.accept().await {
                    Ok((stream, _)) => {
                        let tally = Arc::clone(&tally);
                        connections.spawn(async move {
                            match Connection::new(stream) {
                                Ok(connection) => serve(connection, &tally).await,
                                Err(error) => tally.blame(&format!("receiver: {error:#}")),
                            }
                        });
                    }
                    Err(error) => tally.blame(&format!("receiver cannot accept a connection: {error}")),
                }
            }
        });
        tasks
    }
}

/// Answers one connection until it ends. A killed worker ends it anywhere, so an end is no fault.
async fn serve(mut connection: Connection, tally: &Tally) {
    while let Ok(Some(request)) = connection.read().await {
        let known = request.is_post()
            && request
                .header("webhook-id")
                .is_some_and(|id| tally.delivered(request.body, id, Instant::now()));
        if !known {
            tally.blame("the receiver was sent something that is no delivery of ours");
        }
        if connection
            .write(if known { DONE } else { REFUSED })
            .await
            .is_err()
        {
            return;
        }
    }
}
