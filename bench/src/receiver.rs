use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::tally::Tally;
use crate::wire::Connection;

const DONE: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
const REFUSED: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";

/// An endpoint that takes every delivery, notes it at once, and answers after a while. Dropping
/// it closes it.
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

    /// Answers in the background for as long as the returned tasks live, each call `hold` after
    /// it came. A change of it also holds for the calls under way.
    pub(crate) fn run(self, tally: Arc<Tally>, hold: watch::Receiver<Duration>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                while connections.try_join_next().is_some() {}
                match self.listener.accept().await {
                    Ok((stream, _)) => {
                        let (tally, hold) = (Arc::clone(&tally), hold.clone());
                        connections.spawn(async move {
                            match Connection::new(stream) {
                                Ok(connection) => serve(connection, &tally, hold).await,
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
async fn serve(mut connection: Connection, tally: &Tally, mut hold: watch::Receiver<Duration>) {
    while let Ok(Some(request)) = connection.read().await {
        let came = Instant::now();
        let known = request.is_post()
            && request
                .header("webhook-id")
                .is_some_and(|id| tally.delivered(request.body, id, came));
        if !known {
            tally.blame("the receiver was sent something that is no delivery of ours");
        }
        wait(came, &mut hold).await;
        if connection
            .write(if known { DONE } else { REFUSED })
            .await
            .is_err()
        {
            return;
        }
    }
}

/// Waits until a call that came then is to be answered.
async fn wait(came: Instant, hold: &mut watch::Receiver<Duration>) {
    loop {
        let held = *hold.borrow_and_update();
        if came.elapsed() >= held {
            return;
        }
        tokio::select! {
            () = sleep_until(came + held) => return,
            changed = hold.changed() => if changed.is_err() { return },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_is_held_for_as_long_as_is_said_last() {
        let (say, mut hold) = watch::channel(Duration::from_secs(30));
        let came = Instant::now();
        let waiting = wait(came, &mut hold);
        let saying = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            say.send_replace(Duration::from_secs(10));
        };

        tokio::join!(waiting, saying);

        assert_eq!(came.elapsed(), Duration::from_secs(10));
    }
}
