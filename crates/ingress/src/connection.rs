use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// How long the rest of an unwanted body is read after the answer.
const LINGER: Duration = Duration::from_secs(2);

/// A client's connection that neither waits for ever on a client that reads nothing, nor resets one
/// that is still sending.
///
/// Closing a socket with unread bytes in it makes the kernel send a reset, and a reset discards the
/// answer that the client has not read: a 413 would arrive as a broken connection. So where a body was
/// left unread, the end of our side is sent first, and what still comes is thrown away for a moment.
pub(crate) struct Connection {
    stream: TcpStream,
    write_timeout: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    unread: Arc<AtomicBool>,
    lingering: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    /// `unread` is set by whoever answers a request without reading its body to the end.
    pub(crate) fn new(stream: TcpStream, write_timeout: Duration, unread: Arc<AtomicBool>) -> Self {
        Self {
            stream,
            write_timeout,
            stalled: None,
            unread,
            lingering: None,
        }
    }

    /// Passes on what a write came to; one that makes no progress in time is an error.
    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let timer = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep(self.write_timeout)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Throws away what the client still sends, until it ends or time is up.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.lingering.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        let mut scratch = [0; 8192];
        while timer.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if !self.unread.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_linger(cx).map(Ok)
    }
}
