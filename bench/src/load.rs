use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::figures::note;
use crate::messages::Messages;
use crate::tally::Tally;
use crate::wire::Connection;

/// Longest wait for one answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Wait before the same event is sent again.
const PAUSE: Duration = Duration::from_millis(50);
/// An event that has no 200 after this long ends the benchmark.
const GIVE_UP: Duration = Duration::from_secs(120);

/// Senders that each have one request under way.
///
/// As a provider would, they send an event again until it has its 200: after a 503, and after
/// a connection that broke. Any other answer is an error.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Where events are taken in: each sender begins with another, and goes on to the next where it
    /// was not answered.
    pub(crate) ingress: Arc<[SocketAddr]>,
    pub(crate) messages: Arc<Messages>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) connections: u16,
    /// Events a second over all connections; `None`: each sends as soon as it has its answer.
    pub(crate) rate: Option<u32>,
}

/// What the ingress says with a 200.
#[derive(Debug, serde::Deserialize)]
struct Accepted<'a> {
    event_id: &'a str,
    status: Status,
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Accepted,
    Duplicate,
}

impl Load {
    /// Sends the events with these numbers and returns when each has its 200.
    pub(crate) async fn run(&self, numbers: Range<usize>) -> anyhow::Result<()> {
        let start = Instant::now();
        let next = Arc::new(AtomicUsize::new(numbers.start));
        let mut senders = JoinSet::new();
        for sender in 0..usize::from(self.connections) {
            let (load, next, numbers) = (self.clone(), Arc::clone(&next), numbers.clone());
            senders.spawn(async move { load.send(sender, &next, numbers, start).await });
        }
        let mut again = 0;
        while let Some(sender) = senders.join_next().await {
            again += sender.context("a sender ended early")??;
        }
        if again > 0 {
            note(&format!("{again} requests had no 200 and were sent again"));
        }
        Ok(())
    }

    /// One connection's share; returns how many requests had to be sent again.
    async fn send(
        &self,
        sender: usize,
        next: &AtomicUsize,
        numbers: Range<usize>,
        start: Instant,
    ) -> anyhow::Result<usize> {
        let mut addresses = self.ingress.iter().cycle().skip(sender % self.ingress.len());
        let mut connection = None;
        let mut again = 0;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                return Ok(again);
            }
            let sent = self.wait_for_turn(number - numbers.start, start).await;
            let mut tries = 0_usize;
            loop {
                match self
                    .exchange(&mut addresses, &mut connection, number, sent)
                    .await?
                {
                    Exchange::Accepted => break,
                    Exchange::Duplicate if tries > 0 => break,
                    Exchange::Duplicate => bail!("an event sent for the first time is called a duplicate"),
                    Exchange::Again(cause) if sent.elapsed() > GIVE_UP => {
                        bail!("no 200 within {}s: {cause}", GIVE_UP.as_secs())
                    }
                    Exchange::Again(_) => {
                        tries += 1;
                        sleep(PAUSE).await;
                    }
                }
            }
            again += tries;
        }
    }

    /// Waits until the event is due and returns the moment its time runs from: when it was due,
    /// if no connection was free then, so that a stall shows in every event it held up.
    async fn wait_for_turn(&self, position: usize, start: Instant) -> Instant {
        let Some(rate) = self.rate else {
            return Instant::now();
        };
        let due = start + Duration::from_secs_f64(position as f64 / f64::from(rate));
        if due <= Instant::now() {
            return due;
        }
        sleep_until(due).await;
        // The timer is up to a millisecond late, which is no fault of the system's.
        Instant::now()
    }

    async fn exchange<'a>(
        &self,
        addresses: &mut impl Iterator<Item = &'a SocketAddr>,
        slot: &mut Option<Connection>,
        number: usize,
        sent: Instant,
    ) -> anyhow::Result<Exchange> {
        let connection = match slot {
            Some(connection) => connection,
            None => match open(addresses.next()).await {
                Ok(connection) => slot.insert(connection),
                Err(error) => return Ok(Exchange::Again(format!("{error:#}"))),
            },
        };
        let answer = timeout(ANSWER_LIMIT, async {
            connection.write(self.messages.request(number)).await?;
            connection.read().await?.context("closed without an answer")
        });
        let cause = match answer.await {
            Ok(Ok(answer)) => match answer.status()? {
                200 => {
                    let answered = Instant::now();
                    let accepted: Accepted<'_> =
                        serde_json::from_slice(answer.body).context("a 200 that does not name the event")?;
                    self.tally.accepted(number, accepted.event_id, sent, answered);
                    return Ok(match accepted.status {
                        Status::Accepted => Exchange::Accepted,
                        Status::Duplicate => Exchange::Duplicate,
                    });
                }
                503 => return Ok(Exchange::Again("answered 503".to_owned())),
                status => bail!(
                    "the ingress answered {status}: {}",
                    String::from_utf8_lossy(answer.body)
                ),
            },
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => format!("no answer within {}s", ANSWER_LIMIT.as_secs()),
        };
        *slot = None;
        Ok(Exchange::Again(cause))
    }
}

async fn open(address: Option<&SocketAddr>) -> anyhow::Result<Connection> {
    Connection::open(*address.context("there is nowhere to send to")?).await
}

/// What came of sending an event.
#[derive(Debug)]
enum Exchange {
    Accepted,
    /// Accepted when it was sent before.
    Duplicate,
    /// Not accepted, for this cause; it is to be sent again.
    Again(String),
}

#[cfg(test)]
mod tests {
    use posthaste_jobs::Timestamp;
    use tokio::net::TcpListener;
    use tokio::sync::watch;

    use super::*;
    use crate::messages::Scheme;
    use crate::receiver::Receiver;
    use crate::tally::Progress;

    const COUNT: usize = 500;

    fn load(ingress: SocketAddr, rate: Option<u32>) -> Load {
        let now = Timestamp::from_millis(0);
        let messages = Arc::new(Messages::new(Scheme::Github, COUNT, 1024, now, |_| {
            "push".to_owned()
        }));
        let tally = Arc::new(Tally::new(Arc::clone(&messages)));
        Load {
            ingress: [ingress].into(),
            messages,
            tally,
            connections: 8,
            rate,
        }
    }

    /// A gateway that delivers each event before it answers, and breaks every tenth connection
    /// instead of answering.
    async fn gateway(endpoint: SocketAddr) -> (SocketAddr, JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let served = Arc::new(AtomicUsize::new(0));
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let served = Arc::clone(&served);
                connections.spawn(async move {
                    let mut client = Connection::new(stream).unwrap();
                    let mut out = Connection::open(endpoint).await.unwrap();
                    while let Ok(Some(request)) = client.read().await {
                        let id = request.header("x-github-delivery").unwrap();
                        let answer = format!(r#"{{"event_id":"{id}","status":"accepted"}}"#);
                        let length = request.body.len();
                        let mut delivery = format!(
                            "POST /hooks HTTP/1.1\r\nwebhook-id: {id}\r\ncontent-length: {length}\r\n\r\n"
                        )
                        .into_bytes();
                        delivery.extend(request.body);
                        out.write(&delivery).await.unwrap();
                        assert_eq!(out.read().await.unwrap().unwrap().status().unwrap(), 204);
                        if served.fetch_add(1, Ordering::Relaxed) % 10 == 9 {
                            return;
                        }
                        let length = answer.len();
                        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{answer}");
                        client.write(answer.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        (address, tasks)
    }

    #[tokio::test]
    async fn load_and_receiver_agree_on_what_came_and_what_came_twice() {
        let receiver = Receiver::bind().await.unwrap();
        let (ingress, _gateway) = gateway(receiver.address().unwrap()).await;
        let load = load(ingress, None);
        let _receiver = receiver.run(Arc::clone(&load.tally), watch::channel(Duration::ZERO).1);

        load.run(0..COUNT).await.unwrap();

        assert_eq!(
            load.tally.progress(),
            Progress {
                accepted: COUNT,
                delivered: COUNT
            }
        );
        let summary = load.tally.summary(0..COUNT).unwrap();
        assert_eq!(
            (summary.accepted, summary.delivered, summary.lost),
            (COUNT, COUNT, 0)
        );
        // Of ten deliveries one was not answered, so its event was sent and delivered again.
        assert!(
            (50..=COUNT / 8).contains(&summary.delivered_twice),
            "{}",
            summary.delivered_twice
        );
    }

    #[tokio::test]
    async fn a_fixed_rate_is_not_exceeded() {
        let receiver = Receiver::bind().await.unwrap();
        let (ingress, _gateway) = gateway(receiver.address().unwrap()).await;
        let load = load(ingress, Some(1000));
        let _receiver = receiver.run(Arc::clone(&load.tally), watch::channel(Duration::ZERO).1);
        let start = Instant::now();

        load.run(0..COUNT).await.unwrap();

        assert!(start.elapsed() >= Duration::from_millis(499));
    }

    #[tokio::test]
    async fn a_duplicate_that_was_never_sent_before_is_an_error() {
        let body = r#"{"event_id":"a","status":"duplicate"}"#;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());

        let error = answered_with(&answer).await;

        assert!(error.to_string().contains("duplicate"), "{error}");
    }

    #[tokio::test]
    async fn an_answer_that_is_neither_200_nor_503_is_an_error() {
        let error = answered_with("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").await;

        assert!(error.to_string().contains("401"), "{error}");
    }

    /// Returns how the load ends when every request is answered with this.
    async fn answered_with(answer: &str) -> anyhow::Error {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let load = load(listener.local_addr().unwrap(), None);
        let server = async {
            let mut open = Vec::new();
            loop {
                let mut connection = Connection::new(listener.accept().await.unwrap().0).unwrap();
                connection.write(answer.as_bytes()).await.unwrap();
                open.push(connection);
            }
        };
        tokio::select! {
            outcome = load.run(0..COUNT) => outcome.unwrap_err(),
            _ = server => unreachable!(),
        }
    }
}
