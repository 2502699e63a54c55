//! A wire that can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Passes bytes on to a server, until it is cut: then connections break, and new ones break at once.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    wire: Arc<Wire>,
}

#[derive(Debug, Default)]
struct Wire {
    cut: AtomicBool,
    ends: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Listens on a free port, for the server at `host:port`.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    #[must_use]
    pub fn to(host: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let wire = Arc::new(Wire::default());
        let (accepting, host) = (Arc::clone(&wire), host.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(&host) {
                    accepting.join(client, server);
                }
            }
        });
        Self { address, wire }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Breaks what is connected, and whatever connects until `mend`.
    pub fn cut(&self) {
        self.wire.cut.store(true, Ordering::SeqCst);
        for end in self.wire.ends().drain(..) {
            // An end that is gone already is as cut as it can be.
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    /// Lets connections through again.
    pub fn mend(&self) {
        self.wire.cut.store(false, Ordering::SeqCst);
    }
}

impl Wire {
    fn ends(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, client: TcpStream, server: TcpStream) {
        let mut ends = self.ends();
        if self.cut.load(Ordering::SeqCst) {
            return;
        }
        for (from, to) in [(&client, &server), (&server, &client)] {
            let (from, to) = (copy_of(from), copy_of(to));
            thread::spawn(move || pass_on(from, to));
        }
        ends.extend([client, server]);
    }
}

fn copy_of(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a socket can be shared")
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    // Either may be closed already.
    let _ = to.shutdown(Shutdown::Write);
}
