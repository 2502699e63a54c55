use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use posthaste_outbound::{BreakerConfig, CallError, Delivery, EndpointConfig, Endpoints, Receipt};

/// Sun, 06 Nov 1994 08:49:37 GMT
pub(crate) const NOW: i64 = 784_111_777;

/// Stands in every URL, and may stand in no error.
pub(crate) const TOKEN: &str = "SECRETTOKEN";

pub(crate) const TIMEOUT: Duration = Duration::from_secs(1);

/// A breaker that no test opens by accident.
pub(crate) const PATIENT: BreakerConfig = BreakerConfig {
    failure_rate: 1.0,
    min_calls: 1_000_000,
    window: Duration::from_secs(30),
    cooldown: Duration::from_secs(30),
};

pub(crate) fn endpoint(url: impl Into<String>) -> EndpointConfig {
    EndpointConfig {
        name: "orders".to_owned(),
        url: url.into(),
        timeout: TIMEOUT,
        max_in_flight: 32,
        signing_secret: None,
        breaker: PATIENT,
    }
}

pub(crate) fn endpoints(config: EndpointConfig) -> Endpoints {
    Endpoints::new(vec![config]).unwrap()
}

pub(crate) fn delivery() -> Delivery {
    Delivery {
        id: "evt_1".to_owned(),
        timestamp: NOW,
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"{\"paid\":true}"),
    }
}

pub(crate) async fn deliver(endpoints: &Endpoints) -> Result<Receipt, CallError> {
    endpoints.deliver("orders", delivery()).await.unwrap()
}

/// Everything that a log could print of an error.
pub(crate) fn printed(error: &CallError) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(" {error} {error:?}");
        cause = error.source();
    }
    text
}

/// Waits for a state that other threads bring about.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{what}: not within 10 s"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The folder of other people's data; none, with a word on it, where there is no such folder.
#[expect(
    clippy::print_stderr,
    reason = "whoever reads the run is told what was left out"
)]
pub(crate) fn cases() -> Option<PathBuf> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/cases"));
    let folder = std::env::var_os("POSTHASTE_CASES").map_or_else(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: there are no cases in {}", folder.display());
    None
}

pub(crate) fn json(path: PathBuf) -> Vec<serde_json::Value> {
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap()
}
