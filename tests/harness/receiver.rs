//! The user's service: records every request, and answers as told.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{LONG, Port, until};

/// How to answer.
#[derive(Clone, Debug)]
pub enum Reply {
    /// With a status and a few bytes (none with 204).
    Status(u16),
    /// With a status and a header.
    With(u16, &'static str, String),
    /// With a status, after a while.
    After(Duration, u16),
    /// With a status and a body of so many bytes, of which a reader may take what it wants.
    Big(u16, usize),
    /// With a status and a body that never ends.
    Endless(u16),
    /// Never.
    Hang,
    /// By closing the connection.
    Close,
}

/// A request that came in.
#[derive(Clone, Debug)]
pub struct Received {
    /// When it was there as a whole.
    pub at: Instant,
    /// From the first slash on.
    pub path: String,
    /// In order, names in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Byte for byte.
    pub body: Vec<u8>,
}

impl Received {
    /// Value of a header, named in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }

    /// `webhook-id`, by which a service tells copies.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    #[track_caller]
    pub fn id(&self) -> String {
        self.header("webhook-id")
            .expect("every delivery has a webhook-id")
    }
}

/// A service on a port of its own. Every path answers 200 until told otherwise.
#[derive(Clone, Debug)]
pub struct Receiver {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    received: Mutex<Vec<Received>>,
    replies: Mutex<HashMap<String, Vec<Reply>>>,
}

impl Receiver {
    /// Starts one on a free port.
    ///
    /// # Panics
    ///
    /// When none is free.
    #[must_use]
    pub fn start() -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").expect("a port is free"))
    }

    /// Starts one on a port that refused connections so far.
    ///
    /// # Panics
    ///
    /// When the port is taken.
    #[must_use]
    pub fn start_on(port: &Port) -> Self {
        Self::listen(TcpListener::bind(port.address()).expect("a held port is free"))
    }

    /// Where requests to `path` go.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers the next requests to `path` one after the other like this, and all later ones like the last.
    pub fn reply(&self, path: &str, replies: impl Into<Vec<Reply>>) {
        lock(&self.state.replies).insert(path.to_owned(), replies.into());
    }

    /// All that came in, in order.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        lock(&self.state.received).clone()
    }

    /// What came in for `path`, in order.
    #[must_use]
    pub fn received_on(&self, path: &str) -> Vec<Received> {
        lock(&self.state.received)
            .iter()
            .filter(|request| request.path == path)
            .cloned()
            .collect()
    }

    /// How many came in.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.state.received).len()
    }

    /// Waits until `count` have come in.
    #[track_caller]
    pub fn until_received(&self, count: usize) {
        until(LONG, &format!("{count} requests have come in"), || {
            self.count() >= count
        });
    }

    fn listen(listener: TcpListener) -> Self {
        let address = listener.local_addr().expect("a listener has an address");
        let state = Arc::new(State::default());
        let serving = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&serving);
                // An error is a client that went away.
                thread::spawn(move || serve(&stream, &state));
            }
        });
        Self { address, state }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: &TcpStream, state: &State) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader)? {
        let reply = next_reply(state, &request.path);
        lock(&state.received).push(request);
        if !answer(stream, reply)? {
            break;
        }
    }
    Ok(())
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Received>> {
    let Some(first) = read_line(reader)? else {
        return Ok(None);
    };
    let first = String::from_utf8_lossy(&first).into_owned();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    let mut length = 0;
    while let Some(line) = read_line(reader)?.filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
        let value = line.get(colon + 1..).unwrap_or_default().trim_ascii().to_vec();
        if name == "content-length" {
            length = String::from_utf8_lossy(&value)
                .parse()
                .map_err(io::Error::other)?;
        }
        headers.push((name, value));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Received {
        at: Instant::now(),
        path,
        headers,
        body,
    }))
}

fn read_line(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if reader.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(line.trim_ascii_end().to_vec()))
}

fn next_reply(state: &State, path: &str) -> Reply {
    match lock(&state.replies).get_mut(path) {
        None => Reply::Status(200),
        Some(replies) if replies.len() > 1 => replies.remove(0),
        Some(replies) => replies.first().cloned().unwrap_or(Reply::Status(200)),
    }
}

/// Returns whether the connection can be used again.
fn answer(mut stream: &TcpStream, reply: Reply) -> io::Result<bool> {
    let mut whole = |status: u16, header: &str| {
        let body = if status == 204 { "" } else { "as told" };
        let length = if status == 204 {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        stream.write_all(format!("HTTP/1.1 {status} As Told\r\n{length}{header}\r\n{body}").as_bytes())
    };
    match reply {
        Reply::Status(status) => whole(status, "")?,
        Reply::With(status, name, value) => whole(status, &format!("{name}: {value}\r\n"))?,
        Reply::After(wait, status) => {
            thread::sleep(wait);
            whole(status, "")?;
        }
        Reply::Big(status, length) => {
            stream.write_all(
                format!("HTTP/1.1 {status} As Told\r\ncontent-length: {length}\r\n\r\n").as_bytes(),
            )?;
            let block = vec![b'x'; 64 * 1024];
            let mut left = length;
            while left > 0 {
                let part = left.min(block.len());
                stream.write_all(&block[..part])?;
                left -= part;
            }
        }
        Reply::Endless(status) => {
            stream.write_all(format!("HTTP/1.1 {status} As Told\r\n\r\n").as_bytes())?;
            loop {
                stream.write_all(&[b'x'; 1024])?;
                thread::sleep(Duration::from_millis(5));
            }
        }
        Reply::Hang => {
            // Ends when the other side has had enough.
            io::copy(&mut stream, &mut io::sink())?;
            return Ok(false);
        }
        Reply::Close => return Ok(false),
    }
    Ok(true)
}
