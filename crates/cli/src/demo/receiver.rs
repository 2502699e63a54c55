use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// A request that reached the user's service.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// What the service answered.
    pub(super) status: u16,
}

impl Received {
    /// Returns a header as text; empty when it is not there.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// The user's service: answers as it is told to, path by path, and remembers what reached it.
#[derive(Clone)]
pub(super) struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    answers: Mutex<HashMap<String, Vec<u16>>>,
    received: watch::Sender<Vec<Received>>,
}

impl Receiver {
    /// Listens on a free port of the loopback interface.
    pub(super) async fn start(tracker: &TaskTracker) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let shared = Arc::new(Shared {
            answers: Mutex::default(),
            received: watch::Sender::default(),
        });
        let receiver = Self {
            address: listener.local_addr()?,
            shared: Arc::clone(&shared),
        };
        let connections = tracker.clone();
        tracker.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    let service = service_fn(|request| answer(Arc::clone(&shared), request));
                    // A client that hangs up is no news here.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(receiver)
    }

    /// The URL of a path.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers the next requests to `path` with `statuses`, the last of them for ever. 200 if never told.
    pub(super) fn answers(&self, path: &str, statuses: &[u16]) {
        self.shared
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path.to_owned(), statuses.iter().rev().copied().collect());
    }

    /// Returns everything that has reached `path`, in order.
    pub(super) fn received(&self, path: &str) -> Vec<Received> {
        self.shared
            .received
            .borrow()
            .iter()
            .filter(|received| received.path == path)
            .cloned()
            .collect()
    }

    /// Waits until `path` has received `count` requests.
    pub(super) async fn until(&self, path: &str, count: usize) {
        let mut changes = self.shared.received.subscribe();
        let enough =
            |all: &Vec<Received>| all.iter().filter(|received| received.path == path).count() >= count;
        // The sender lives in `self`, so the wait cannot end for want of one.
        let _ = changes.wait_for(enough).await;
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let body = body.collect().await?.to_bytes();
    let status = {
        let mut answers = shared.answers.lock().unwrap_or_else(PoisonError::into_inner);
        match answers.get_mut(&path) {
            Some(statuses) if statuses.len() > 1 => statuses.pop().unwrap_or(200),
            Some(statuses) => statuses.last().copied().unwrap_or(200),
            None => 200,
        }
    };
    shared.received.send_modify(|all| {
        all.push(Received {
            path,
            headers: parts.headers,
            body,
            status,
        })
    });
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok(response)
}
