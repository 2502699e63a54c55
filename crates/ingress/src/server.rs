use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;
use tracing::{debug, warn};

use crate::Config;
use crate::connection::Connection;
use crate::request_id::{X_REQUEST_ID, request_id};
use crate::router::Client;

/// Room that the parser has beyond `http.max_headers`, so that headers somewhat over the limit get a
/// problem document. Beyond that the answer is a bare 431.
const HEADROOM: usize = 64 * 1024;
/// How long to wait after a failed accept. The usual reason is that all file descriptors are in use,
/// and the next try would fail at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Takes connections and has a router answer their requests.
pub(crate) struct Server {
    http: http1::Builder,
    read_timeout: Duration,
    router: Router,
    connections: TaskTracker,
}

impl Server {
    pub(crate) fn new(config: &Config, router: Router) -> Self {
        Self {
            http: http(config),
            read_timeout: config.read_timeout.0,
            router,
            connections: TaskTracker::new(),
        }
    }

    /// Serves until `soft`, then finishes the requests under way, until `hard` at the latest. When it returns, no
    /// connection is open.
    pub(crate) async fn run(self, listener: TcpListener, soft: CancellationToken, hard: CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = soft.cancelled() => break,
                () = hard.cancelled() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, client)) => self.spawn(stream, client, soft.clone(), hard.clone()),
                    Err(error) => pause_after(error).await,
                },
            }
        }
        drop(listener);
        self.connections.close();
        self.connections.wait().await;
    }

    fn spawn(&self, stream: TcpStream, client: SocketAddr, soft: CancellationToken, hard: CancellationToken) {
        let serving = serve_connection(
            self.http.clone(),
            self.router.clone(),
            stream,
            client,
            self.read_timeout,
            soft,
        );
        self.connections.spawn(async move {
            tokio::select! {
                () = serving => {}
                () = hard.cancelled() => debug!(client.address = %client, "cut a connection at the end of a stop"),
            }
        });
    }
}

/// HTTP/1 only. The timer makes the header time-out real: it runs from the first moment of a
/// connection, and again from the end of each answer, so it also ends silent connections.
fn http(config: &Config) -> http1::Builder {
    let max_headers = usize::try_from(config.max_headers.as_u64()).unwrap_or(usize::MAX);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(config.read_timeout.0)
        .max_buf_size(max_headers.saturating_add(HEADROOM))
        .half_close(true);
    http
}

async fn serve_connection(
    http: http1::Builder,
    router: Router,
    stream: TcpStream,
    client: SocketAddr,
    read_timeout: Duration,
    soft: CancellationToken,
) {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, client.address = %client, "a connection was gone before it was served");
        return;
    }
    let unread = Arc::new(AtomicBool::new(true));
    let stream = Connection::new(stream, read_timeout, Arc::clone(&unread));
    let service = service_fn(|request| answer(router.clone(), request, client, Arc::clone(&unread)));
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = soft.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, client.address = %client, "a connection ended early");
    }
}

/// Answers one request, with its id on the answer.
async fn answer(
    router: Router,
    request: hyper::Request<Incoming>,
    client: SocketAddr,
    unread: Arc<AtomicBool>,
) -> Result<Response, Infallible> {
    let id = request_id(request.headers(), rand::random());
    let has_body = !request.body().is_end_stream();
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(Client(client));
    let mut response = router.oneshot(request).await?;
    unread.store(has_body && !response.status().is_success(), Ordering::Relaxed);
    response.headers_mut().insert(X_REQUEST_ID, id);
    Ok(response)
}

/// A connection that was given up before we took it costs nothing; anything else needs time to pass.
async fn pause_after(error: io::Error) {
    if !matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    ) {
        warn!(%error, "no connection can be taken for the moment");
        sleep(ACCEPT_PAUSE).await;
    }
}
