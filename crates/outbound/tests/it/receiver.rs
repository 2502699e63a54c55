//! A scripted server on a raw socket, since no HTTP library would send what some endpoints do.

use std::io::{self, BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What to do once a request has been read; `nth` counts requests from 1.
pub(crate) type Script = dyn Fn(&mut TcpStream, usize) -> io::Result<Next> + Send + Sync;

/// What to do with the connection afterwards.
pub(crate) enum Next {
    Keep,
    Close,
}

/// One request, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) connection: usize,
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The only value of a header; `None` where there is none.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(other, _)| other == name);
        let value = values.next();
        assert!(values.next().is_none(), "{name} is there twice");
        value.map(|(_, value)| value.as_str())
    }
}

#[derive(Clone)]
pub(crate) struct Receiver {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    open: Arc<AtomicUsize>,
}

impl Receiver {
    pub(crate) fn start(
        script: impl Fn(&mut TcpStream, usize) -> io::Result<Next> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            open: Arc::default(),
        };
        let (accepting, script) = (receiver.clone(), Arc::new(script));
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (receiver, script) = (accepting.clone(), Arc::clone(&script));
                receiver.open.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    // A client that goes away is an error here, and often what the test wants.
                    let _ = receiver.serve(connection, stream.unwrap(), &*script);
                    receiver.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        receiver
    }

    /// One that answers every request with these bytes, and keeps the connection.
    pub(crate) fn answering(answer: &'static str) -> Self {
        Self::start(move |stream, _| {
            io::Write::write_all(stream, answer.as_bytes())?;
            Ok(Next::Keep)
        })
    }

    /// One that takes every request and never answers.
    pub(crate) fn hanging() -> Self {
        Self::start(|stream, _| wait_for_close(stream, Duration::from_secs(30)))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    fn serve(&self, connection: usize, mut stream: TcpStream, script: &Script) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(request) = read_request(&mut reader, connection)? {
            let nth = {
                let mut seen = self.seen.lock().unwrap();
                seen.push(request);
                seen.len()
            };
            if let Next::Close = script(&mut stream, nth)? {
                break;
            }
        }
        Ok(())
    }
}

/// Keeps the connection open and silent until the client closes it.
pub(crate) fn wait_for_close(stream: &mut TcpStream, at_most: Duration) -> io::Result<Next> {
    stream.set_read_timeout(Some(at_most))?;
    let _ = stream.read(&mut [0; 1])?;
    Ok(Next::Close)
}

fn read_request(reader: &mut BufReader<TcpStream>, connection: usize) -> io::Result<Option<Request>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let headers: Vec<(String, String)> = lines[1..]
        .iter()
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
    reader.read_exact(&mut body)?;

    Ok(Some(Request {
        connection,
        line: lines[0].clone(),
        headers,
        body,
    }))
}
