use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use posthaste_jobs::{EventId, JobId, Priority, Span, Timestamp};
use posthaste_queue::{Entry, Probe, Survey};
use posthaste_store::{Accepted, LedgerError, NewEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::downstream::{Answer, Downstream, QueueTrouble};
use crate::ingress::House;
use crate::{Catalog, Config, Duty, RouteConfig, Scheme, SourceConfig};

pub(super) const NOW: Timestamp = Timestamp::from_millis(1_796_095_930_000);
pub(super) const SECRET: &str = "mysecret";
/// Longer than anything here takes; reaching it is a failure.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A ledger and a queue in memory.
pub(super) struct Rooms {
    known: Mutex<HashMap<(String, String), EventId>>,
    pub(super) accepted: Mutex<Vec<NewEvent>>,
    pub(super) pushed: Mutex<Vec<JobId>>,
    pub(super) ledger_down: AtomicBool,
    pub(super) queue_down: AtomicBool,
    /// What a look at the queue finds while it is there.
    pub(super) probe: Mutex<Probe>,
    /// Checks of the ledger so far.
    pub(super) checks: AtomicUsize,
    /// Accepts begun so far.
    pub(super) begun: AtomicUsize,
    /// Each accept takes one, and waits until there is one.
    pub(super) gate: Semaphore,
}

impl Rooms {
    fn unavailable<T>(&self) -> Result<T, LedgerError> {
        Err(LedgerError::Unavailable("no route to host".into()))
    }

    /// Makes every accept wait, and tells how many do through `begun`.
    pub(super) fn hold_accepts(&self) {
        self.gate.forget_permits(usize::MAX);
    }

    pub(super) fn events(&self) -> Vec<NewEvent> {
        self.accepted.lock().unwrap().clone()
    }
}

impl Downstream for Rooms {
    fn accept(&self, event: NewEvent) -> Answer<'_, Result<Accepted, LedgerError>> {
        Box::pin(async move {
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.gate.acquire().await.unwrap().forget();
            if self.ledger_down.load(Ordering::SeqCst) {
                return self.unavailable();
            }
            let name = (event.source.clone(), event.provider_id.clone());
            let mut known = self.known.lock().unwrap();
            if let Some(&first) = known.get(&name) {
                return Ok(Accepted::Duplicate(first));
            }
            known.insert(name, event.id);
            self.accepted.lock().unwrap().push(event);
            Ok(Accepted::New)
        })
    }

    fn push<'a>(&'a self, entries: &'a [Entry]) -> Answer<'a, Result<(), QueueTrouble>> {
        Box::pin(async move {
            if self.queue_down.load(Ordering::SeqCst) {
                return Err("connection refused".into());
            }
            self.pushed
                .lock()
                .unwrap()
                .extend(entries.iter().map(|entry| entry.job));
            Ok(())
        })
    }

    fn check_ledger(&self) -> Answer<'_, Result<(), LedgerError>> {
        self.checks.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            match self.ledger_down.load(Ordering::SeqCst) {
                true => self.unavailable(),
                false => Ok(()),
            }
        })
    }

    fn check_queue(&self) -> Answer<'_, Result<Probe, QueueTrouble>> {
        Box::pin(async {
            match self.queue_down.load(Ordering::SeqCst) {
                true => Err("the queue cannot be reached".into()),
                false => Ok(self.probe.lock().unwrap().clone()),
            }
        })
    }
}

/// A server on a free port, with the sources `github`, `stripe`, `open` and `small` (8 bytes).
pub(super) struct TestServer {
    pub(super) address: SocketAddr,
    pub(super) rooms: Arc<Rooms>,
    pub(super) soft: CancellationToken,
    pub(super) hard: CancellationToken,
    pub(super) catalog: watch::Sender<Arc<Catalog>>,
    serving: JoinHandle<()>,
}

impl TestServer {
    pub(super) async fn start() -> Self {
        Self::with(Config::default()).await
    }

    pub(super) async fn with(config: Config) -> Self {
        Self::charged(config, Duty::Accept).await
    }

    pub(super) async fn charged(config: Config, duty: Duty) -> Self {
        let rooms = Arc::new(Rooms {
            known: Mutex::default(),
            accepted: Mutex::default(),
            pushed: Mutex::default(),
            ledger_down: AtomicBool::new(false),
            queue_down: AtomicBool::new(false),
            probe: Mutex::new(Probe {
                survey: Survey::default(),
                server: None,
            }),
            checks: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            gate: Semaphore::new(1_000_000),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (catalog, latest) = watch::channel(Arc::new(test_catalog()));
        let (soft, hard) = (CancellationToken::new(), CancellationToken::new());
        let downstream: Arc<dyn Downstream> = Arc::<Rooms>::clone(&rooms);
        let house = House {
            config,
            catalog: latest,
            clock: Arc::new(|| NOW),
            downstream,
            duty,
        };
        let serving = TaskTracker::new().spawn(house.serve(listener, soft.clone(), hard.clone()));
        Self {
            address,
            rooms,
            soft,
            hard,
            catalog,
            serving,
        }
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes, says that no more will come, and returns all that is answered.
    pub(super) async fn exchange(&self, bytes: &[u8]) -> Vec<Answered> {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        parse(&read_to_end(&mut stream).await)
    }

    /// Sends one request and returns its answer.
    pub(super) async fn send(&self, request: &Request) -> Answered {
        let mut answers = self.exchange(&request.bytes()).await;
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers.remove(0)
    }

    /// Sends a request again and again until it is answered so.
    pub(super) async fn send_until(&self, status: u16, request: &Request) {
        let sending = async { while self.send(request).await.status != status {} };
        tokio::time::timeout(PATIENCE, sending)
            .await
            .unwrap_or_else(|_| panic!("never answered {status}"));
    }

    /// Waits until the server has ended by itself.
    pub(super) async fn ended(self) {
        tokio::time::timeout(PATIENCE, self.serving)
            .await
            .expect("the server did not end")
            .unwrap();
    }
}

pub(super) fn short(read_timeout_ms: u64) -> Config {
    Config {
        read_timeout: Span(Duration::from_millis(read_timeout_ms)),
        ..Config::default()
    }
}

fn test_catalog() -> Catalog {
    let route = |source: &str, event_types: &[&str], endpoint: &str| RouteConfig {
        source: source.to_owned(),
        event_types: event_types.iter().map(|&text| text.to_owned()).collect(),
        endpoint: endpoint.to_owned(),
        priority: Priority::Normal,
    };
    Catalog::new(
        vec![
            source("github", Scheme::Github, &[SECRET]),
            source("stripe", Scheme::Stripe, &["whsec_test_secret"]),
            source("open", Scheme::None, &[]),
            SourceConfig {
                max_body: Some(bytesize::ByteSize::b(8)),
                ..source("small", Scheme::None, &[])
            },
        ],
        vec![
            route("github", &[], "ci"),
            route("stripe", &["payment_intent.*"], "orders"),
            route("stripe", &["payment_intent.succeeded"], "orders"),
            route("stripe", &["payment_intent.succeeded"], "books"),
        ],
        &["ci".to_owned(), "orders".to_owned(), "books".to_owned()],
    )
    .unwrap()
}

pub(super) fn source(name: &str, scheme: Scheme, secrets: &[&str]) -> SourceConfig {
    SourceConfig {
        name: name.to_owned(),
        scheme,
        secrets: secrets.iter().map(|&secret| secret.to_owned()).collect(),
        tolerance: None,
        max_body: None,
    }
}

/// A request in parts.
pub(super) struct Request {
    pub(super) line: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    pub(super) fn new(line: &str, body: &[u8]) -> Self {
        Self {
            line: line.to_owned(),
            headers: vec![("content-length".to_owned(), body.len().to_string())],
            body: body.to_vec(),
        }
    }

    /// A request to `/webhooks/github`, rightly signed.
    pub(super) fn github(id: &str, body: &[u8]) -> Self {
        Self::signed("github", &Scheme::Github, SECRET, id, "push", body)
    }

    /// A request to `/webhooks/stripe`, rightly signed.
    pub(super) fn stripe(body: &[u8]) -> Self {
        Self::signed("stripe", &Scheme::Stripe, "whsec_test_secret", "", "", body)
    }

    fn signed(source: &str, scheme: &Scheme, secret: &str, id: &str, event_type: &str, body: &[u8]) -> Self {
        let mut request = Self::new(&format!("POST /webhooks/{source}"), body);
        request
            .headers
            .extend(scheme.sign(secret, id, event_type, body, NOW).unwrap());
        request
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} HTTP/1.1\r\nhost: test\r\n", self.line);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        [text.as_bytes(), &self.body].concat()
    }
}

/// An answer in parts, without interim ones.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: u16,
    head: String,
    body: String,
}

impl Answered {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(super) fn code(&self) -> String {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        self.json()["code"].as_str().unwrap().to_owned()
    }
}

/// Reads until the server closes.
pub(super) async fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes))
        .await
        .expect("the server did not close")
        .unwrap();
    bytes
}

/// Reads exactly one answer from an open connection.
pub(super) async fn read_one(stream: &mut TcpStream) -> Answered {
    let reading = async {
        let mut bytes = Vec::new();
        loop {
            let mut chunk = [0; 4096];
            let length = stream.read(&mut chunk).await.unwrap();
            assert_ne!(length, 0, "closed after {:?}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&chunk[..length]);
            if let Some(answer) = parse(&bytes).pop() {
                return answer;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("no answer")
}

/// Takes all complete answers with a `content-length` from what a server sent.
pub(super) fn parse(bytes: &[u8]) -> Vec<Answered> {
    let mut text = std::str::from_utf8(bytes).unwrap();
    let mut answers = Vec::new();
    while let Some((head, rest)) = text.split_once("\r\n\r\n") {
        let status = head[9..12].parse().unwrap();
        text = rest;
        if status < 200 {
            continue;
        }
        let mut answer = Answered {
            status,
            head: head.to_owned(),
            body: String::new(),
        };
        let length: usize = answer
            .header("content-length")
            .map_or(0, |value| value.parse().unwrap());
        let Some((body, rest)) = text.split_at_checked(length) else {
            break;
        };
        answer.body = body.to_owned();
        text = rest;
        answers.push(answer);
    }
    answers
}

/// Waits until something is so.
pub(super) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("not so in time: {what}"));
}

/// The folder of other people's data; none, with a word on it, where there is no such folder.
pub(super) fn cases() -> Option<PathBuf> {
    let cases = std::env::var_os("POSTHASTE_CASES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases"),
        PathBuf::from,
    );
    if cases.is_dir() {
        return Some(cases);
    }
    eprintln!("SKIPPED: there are no cases in {}", cases.display());
    None
}
