use std::io;
use std::sync::{Arc, Mutex};

use tracing::level_filters::LevelFilter;
use tracing::subscriber::DefaultGuard;

use super::harness::{Request, TestServer, cases, until};

/// All that is logged on this thread, where a test's server runs too.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn capture() -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn lines_with(&self, word: &str) -> usize {
        self.text().lines().filter(|line| line.contains(word)).count()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_query_path_or_header_value_is_logged_whatever_comes_of_the_request() {
    let Some(cases) = cases() else { return };
    let (log, _guard) = Log::capture();
    let server = TestServer::start().await;
    let accepted = std::fs::read(cases.join("http/inbound_raw/query_string.http")).unwrap();

    assert_eq!(server.exchange(&accepted).await[0].status, 200);
    let secretive = [
        Request::new("POST /webhooks/github?token=SECRETTOKEN", b"SECRETTOKEN"),
        Request::new("POST /webhooks/stripe", b"").header("stripe-signature", "t=SECRETTOKEN,v1=SECRETTOKEN"),
        Request::new("POST /webhooks/SECRETTOKEN", b""),
        Request::new("POST /SECRETTOKEN", b""),
        Request::new("SECRETTOKEN /webhooks/github", b""),
        Request::github("d-1", b"{}").header("x-github-delivery", "SECRETTOKEN"),
        Request::github("d-2", b"{}").header("authorization", "Bearer SECRETTOKEN"),
    ];
    for request in secretive {
        let answer = server.send(&request).await;
        assert!(!format!("{answer:?}").contains("SECRETTOKEN"), "{answer:?}");
    }

    assert!(!log.text().contains("SECRETTOKEN"), "{}", log.text());
    assert!(log.lines_with("accepted an event") >= 2, "{}", log.text());
}

#[tokio::test]
async fn a_refusal_is_logged_with_its_cause_its_source_and_who_sent_it() {
    let (log, _guard) = Log::capture();
    let server = TestServer::start().await;

    server.send(&Request::new("POST /webhooks/github", b"{}")).await;

    let text = log.text();
    let line = text.lines().find(|line| line.contains("WARN")).unwrap();
    for word in [
        "cause=\"missing_header\"",
        "source.name=\"github\"",
        "client.address=127.0.0.1:",
    ] {
        assert!(line.contains(word), "{word} is not in {line}");
    }
}

#[tokio::test]
async fn a_flood_of_refusals_is_counted_and_not_repeated() {
    let (log, _guard) = Log::capture();
    let server = TestServer::start().await;
    for _ in 0..50 {
        server.send(&Request::new("POST /webhooks/github", b"{}")).await;
    }
    let told = || -> u64 {
        let text = log.text();
        let counts = text.lines().filter(|line| line.contains("WARN")).map(|line| {
            let count = line
                .split("count=")
                .nth(1)
                .and_then(|rest| rest.split_whitespace().next());
            count.map_or(1, |count| count.parse::<u64>().unwrap())
        });
        counts.sum()
    };
    until("all 50 are told", || told() == 50).await;

    assert!(log.lines_with("WARN") < 10, "{}", log.text());
}
