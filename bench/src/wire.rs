//! HTTP/1.1 on one connection, as little as measuring needs.
//!
//! Messages are framed by `content-length`; one that is framed otherwise is refused rather than
//! misread. Head and body are bounded.

use std::net::SocketAddr;

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const HEAD_LIMIT: usize = 32 * 1024;
const BODY_LIMIT: usize = 2 * 1024 * 1024;

/// A connection that messages are read from, one after the other.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// How much of the buffer the last message was.
    used: usize,
}

/// A request or an answer, as it came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Incoming<'a> {
    head: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl Connection {
    /// Connects to a server.
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        Self::new(TcpStream::connect(address).await?)
    }

    /// Takes over a connection.
    pub(crate) fn new(stream: TcpStream) -> anyhow::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(8 * 1024),
            used: 0,
        })
    }

    /// Writes all bytes.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Reads the next message; `None` if the other side closed after the last one.
    pub(crate) async fn read(&mut self) -> anyhow::Result<Option<Incoming<'_>>> {
        self.buffer.drain(..self.used);
        self.used = 0;

        let head = loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            ensure!(
                self.buffer.len() < HEAD_LIMIT,
                "a head of more than {HEAD_LIMIT} bytes"
            );
            if !self.fill().await? {
                ensure!(self.buffer.is_empty(), "cut off within a head");
                return Ok(None);
            }
        };
        let length = body_length(&self.buffer[..head])?;
        ensure!(length <= BODY_LIMIT, "a body of more than {BODY_LIMIT} bytes");
        while self.buffer.len() < head + length {
            ensure!(self.fill().await?, "cut off within a body");
        }

        self.used = head + length;
        let (head, body) = self.buffer[..self.used].split_at(head);
        Ok(Some(Incoming { head, body }))
    }

    /// Reads what there is; `false` at the end.
    async fn fill(&mut self) -> anyhow::Result<bool> {
        self.buffer.reserve(4 * 1024);
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }
}

impl Incoming<'_> {
    /// Returns the status of an answer.
    pub(crate) fn status(&self) -> anyhow::Result<u16> {
        status(self.head).context("not an answer in HTTP/1.1")
    }

    /// Whether this is a request that posts something.
    pub(crate) fn is_post(&self) -> bool {
        self.head.starts_with(b"POST ")
    }

    /// Returns the value of the first header with this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }
}

fn body_length(head: &[u8]) -> anyhow::Result<usize> {
    ensure!(
        header(head, "transfer-encoding").is_none(),
        "framed by transfer-encoding, not by content-length"
    );
    match header(head, "content-length") {
        Some(length) => length
            .parse()
            .with_context(|| format!("content-length is {length:?}")),
        None => match status(head) {
            // A request without one has no body; of the answers, only these.
            None | Some(100..=199 | 204 | 304) => Ok(0),
            Some(status) => bail!("an answer {status} without content-length"),
        },
    }
}

fn status(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.1 ")?;
    std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok()
}

fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    head.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
        let (found, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?;
        found
            .eq_ignore_ascii_case(name.as_bytes())
            .then(|| std::str::from_utf8(value).ok().map(str::trim))?
    })
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// A connection to read from, and its other end.
    async fn pair() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let other = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (
            Connection::new(listener.accept().await.unwrap().0).unwrap(),
            other,
        )
    }

    #[tokio::test]
    async fn two_messages_in_one_packet_are_read_one_after_the_other() {
        let (mut connection, mut other) = pair().await;
        let both = b"POST / HTTP/1.1\r\nContent-Length: 2\r\nX-A:  b \r\n\r\nhi\
            POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nyou";
        other.write_all(both).await.unwrap();
        drop(other);

        let first = connection.read().await.unwrap().unwrap();
        assert!(first.is_post());
        assert_eq!(first.body, b"hi");
        assert_eq!(first.header("x-a"), Some("b"));
        assert_eq!(first.header("x"), None);
        assert_eq!(connection.read().await.unwrap().unwrap().body, b"you");
        assert_eq!(connection.read().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_message_in_many_packets_is_read_whole() {
        let (mut connection, mut other) = pair().await;
        let write = async {
            for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello" {
                other.write_all(&[*byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
        };

        let (answer, ()) = tokio::join!(connection.read(), write);

        let answer = answer.unwrap().unwrap();
        assert_eq!(answer.status().unwrap(), 200);
        assert_eq!(answer.body, b"hello");
    }

    #[tokio::test]
    async fn an_answer_cut_off_is_an_error() {
        for part in [
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell",
        ] {
            let (mut connection, mut other) = pair().await;
            other.write_all(part.as_bytes()).await.unwrap();
            drop(other);

            assert!(connection.read().await.is_err(), "{part:?}");
        }
    }

    #[test]
    fn a_length_that_is_not_understood_is_an_error() {
        assert!(body_length(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
        assert!(body_length(b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n").is_err());
        assert!(body_length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert_eq!(body_length(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap(), 0);
    }

    #[tokio::test]
    async fn a_body_may_be_as_long_as_the_limit_and_no_longer() {
        for (length, fits) in [(BODY_LIMIT, true), (BODY_LIMIT + 1, false)] {
            let (mut connection, mut other) = pair().await;
            let write = async {
                let head = format!("POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n");
                other.write_all(head.as_bytes()).await.unwrap();
                if fits {
                    other.write_all(&vec![b'.'; length]).await.unwrap();
                }
            };

            let (read, ()) = tokio::join!(connection.read(), write);

            assert_eq!(read.is_ok(), fits, "{length}");
        }
    }
}
