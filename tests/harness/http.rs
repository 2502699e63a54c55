//! The provider: HTTP over a plain socket, so that a request can be as wrong as a test needs.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use super::{GITHUB_SECRET, STANDARD_SECRET, STRIPE_SECRET, sign};

/// Longer than the product may ever take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request to be sent on a connection of its own.
#[derive(Clone, Debug)]
pub struct Request {
    /// `POST` unless a test says otherwise.
    pub method: String,
    /// From the first slash on.
    pub path: String,
    /// Besides `host`, `connection` and the framing.
    pub headers: Vec<(String, String)>,
    /// Sent as it is.
    pub body: Vec<u8>,
    /// Sent in chunks, without telling its length beforehand.
    pub chunked: bool,
}

impl Request {
    /// A bare request.
    #[must_use]
    pub fn new(method: &str, path: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: body.into(),
            chunked: false,
        }
    }

    /// An unsigned JSON webhook to `source`.
    #[must_use]
    pub fn webhook(source: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new("POST", &format!("/webhooks/{source}"), body).header("content-type", "application/json")
    }

    /// A delivery of GitHub, signed with [`GITHUB_SECRET`].
    #[must_use]
    pub fn github(source: &str, delivery: &str, event: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let signature = sign::github(GITHUB_SECRET, &body);
        Self::webhook(source, body)
            .header("user-agent", "GitHub-Hookshot/044aadd")
            .header("x-github-event", event)
            .header("x-github-delivery", delivery)
            .header("x-hub-signature-256", &signature)
    }

    /// An event of Stripe, signed with [`STRIPE_SECRET`] by a clock that is `offset_secs` off.
    #[must_use]
    pub fn stripe(source: &str, offset_secs: i64, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let signature = sign::stripe(STRIPE_SECRET, sign::now(offset_secs), &body);
        Self::webhook(source, body).header("stripe-signature", &signature)
    }

    /// A Standard Webhook, signed with [`STANDARD_SECRET`] by a clock that is `offset_secs` off.
    #[must_use]
    pub fn standard(source: &str, id: &str, offset_secs: i64, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let timestamp = sign::now(offset_secs);
        let signature = sign::standard(STANDARD_SECRET, id, timestamp, &body);
        Self::webhook(source, body)
            .header("webhook-id", id)
            .header("webhook-timestamp", &timestamp.to_string())
            .header("webhook-signature", &signature)
    }

    /// With one header more.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without a header.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self
    }

    /// With another value of a header that is there or not.
    #[must_use]
    pub fn with(self, name: &str, value: &str) -> Self {
        self.without(name).header(name, value)
    }

    /// In chunks.
    #[must_use]
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    /// Sends it and reads the answer.
    ///
    /// # Panics
    ///
    /// When there is no whole answer.
    #[must_use]
    #[track_caller]
    pub fn send(&self, to: SocketAddr) -> Response {
        self.try_send(to)
            .unwrap_or_else(|error| panic!("{} {}: no answer: {error}", self.method, self.path))
    }

    /// Sends it and reads the answer, if there is one.
    ///
    /// # Errors
    ///
    /// When the connection cannot be made or breaks before a whole answer.
    pub fn try_send(&self, to: SocketAddr) -> io::Result<Response> {
        let mut stream = connect(to)?;
        // A server may answer and close before it has read everything: the answer counts, not the write.
        let _ = self.write(&mut stream);
        Response::read(&mut stream)
    }

    /// What goes before the body.
    #[must_use]
    pub fn head(&self) -> String {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: posthaste.test\r\nconnection: close\r\n",
            self.method, self.path
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.chunked {
            head.push_str("transfer-encoding: chunked\r\n");
        } else if !self.headers.iter().any(|(name, _)| name == "content-length") {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head + "\r\n"
    }

    fn write(&self, stream: &mut TcpStream) -> io::Result<()> {
        if !self.chunked {
            stream.write_all(&[self.head().as_bytes(), &self.body].concat())?;
            return Ok(());
        }
        stream.write_all(self.head().as_bytes())?;
        for chunk in self.body.chunks(16 * 1024) {
            stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes())?;
            stream.write_all(chunk)?;
            stream.write_all(b"\r\n")?;
        }
        stream.write_all(b"0\r\n\r\n")
    }
}

/// Connects, with a limit to how long a read can take.
///
/// # Errors
///
/// When nobody listens.
pub(crate) fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// Chunks put together.
    pub body: Vec<u8>,
}

impl Response {
    /// Reads one until the other side closes.
    ///
    /// # Errors
    ///
    /// When it breaks off, or is no HTTP.
    pub fn read(stream: &mut TcpStream) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let end = stream.read_to_end(&mut bytes);
        let split = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let Some(split) = split else {
            end?;
            return Err(io::Error::other("the connection was closed without an answer"));
        };
        let head = String::from_utf8_lossy(&bytes[..split]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1)?.parse().ok())
            .ok_or_else(|| io::Error::other("the first line has no status"))?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut response = Self {
            status,
            headers,
            body: bytes.split_off(split + 4),
        };
        if response.header("transfer-encoding") == Some("chunked") {
            response.body = unchunk(&response.body)?;
        }
        Ok(response)
    }

    /// Value of a header, named in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Panics
    ///
    /// When it is none.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{self:?} is not JSON: {error}"))
    }

    /// A member of the JSON body that is a text.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    #[track_caller]
    pub fn text(&self, member: &str) -> String {
        self.json()[member]
            .as_str()
            .unwrap_or_else(|| panic!("{} has no {member}", self.json()))
            .to_owned()
    }

    /// The event's id, of an event that was accepted.
    ///
    /// # Panics
    ///
    /// When it was not.
    #[track_caller]
    pub fn accepted(&self) -> String {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.text("status"), "accepted");
        self.text("event_id")
    }
}

fn unchunk(mut rest: &[u8]) -> io::Result<Vec<u8>> {
    let broken = || io::Error::other("a chunk is broken off");
    let mut body = Vec::new();
    loop {
        let line = rest
            .windows(2)
            .position(|window| window == b"\r\n")
            .ok_or_else(broken)?;
        let size = std::str::from_utf8(&rest[..line])
            .ok()
            .and_then(|size| usize::from_str_radix(size, 16).ok())
            .ok_or_else(broken)?;
        let start = line + 2;
        if size == 0 {
            return Ok(body);
        }
        body.extend_from_slice(rest.get(start..start + size).ok_or_else(broken)?);
        rest = rest.get(start + size + 2..).ok_or_else(broken)?;
    }
}
