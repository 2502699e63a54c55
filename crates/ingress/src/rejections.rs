//! Counts what is refused, and tells the log without flooding it.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use posthaste_jobs::chain;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::warn;

/// How often a source may have a line.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Refused requests by source and cause.
///
/// The first of a source is logged at once with its cause and sender. What follows within a second
/// is counted by cause, and the counts become one line.
#[derive(Debug, Default)]
pub(crate) struct Rejections {
    sources: Mutex<HashMap<String, Account>>,
}

#[derive(Debug, Default)]
struct Account {
    last_line: Option<Instant>,
    unsaid: BTreeMap<&'static str, u64>,
}

impl Rejections {
    /// Counts one. `source` is a name from the catalog, so their number is bounded.
    pub(crate) fn note(
        &self,
        source: &str,
        cause: &'static str,
        client: SocketAddr,
        error: Option<&dyn Error>,
    ) {
        let mut sources = self.lock();
        if !sources.contains_key(source) {
            sources.insert(source.to_owned(), Account::default());
        }
        let Some(account) = sources.get_mut(source) else {
            return;
        };
        let now = Instant::now();
        if account
            .last_line
            .is_some_and(|last| now.duration_since(last) < LINE_EVERY)
        {
            *account.unsaid.entry(cause).or_default() += 1;
            return;
        }
        account.last_line = Some(now);
        drop(sources);
        warn!(
            source.name = source,
            cause,
            client.address = %client,
            error = error.map(chain),
            "refused a request to source {source:?}"
        );
    }

    /// Logs once a second what was counted meanwhile.
    pub(crate) async fn flush_for_ever(&self) -> Infallible {
        let mut ticks = interval(LINE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.flush();
        }
    }

    /// Logs what was counted and not yet said.
    pub(crate) fn flush(&self) {
        for (source, unsaid) in self.take_unsaid() {
            let count: u64 = unsaid.values().sum();
            warn!(
                source.name = source,
                causes = by_cause(&unsaid),
                count,
                "refused {count} more requests to source {source:?}"
            );
        }
    }

    fn take_unsaid(&self) -> Vec<(String, BTreeMap<&'static str, u64>)> {
        let mut sources = self.lock();
        let unsaid = sources
            .iter_mut()
            .filter(|(_, account)| !account.unsaid.is_empty());
        unsaid
            .map(|(source, account)| {
                account.last_line = Some(Instant::now());
                (source.clone(), std::mem::take(&mut account.unsaid))
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Account>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn by_cause(counts: &BTreeMap<&'static str, u64>) -> String {
    let words: Vec<String> = counts
        .iter()
        .map(|(cause, count)| format!("{cause}={count}"))
        .collect();
    words.join(" ")
}
