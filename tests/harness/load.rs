//! Many events from a provider that tries each until it gets its 200.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{LONG, Receiver, Request, until};

impl Outcome {
    /// Holds it against what has arrived: nothing lost, nothing else delivered, at most so many copies.
    ///
    /// # Panics
    ///
    /// When it is otherwise.
    #[track_caller]
    pub fn is_delivered(&self, receiver: &Receiver, most_copies: usize) {
        let mut deliveries: BTreeMap<String, usize> = BTreeMap::new();
        for request in receiver.received() {
            *deliveries.entry(request.id()).or_default() += 1;
        }
        let accepted: BTreeSet<&String> = self.accepted.values().collect();
        let lost: Vec<_> = accepted
            .iter()
            .filter(|event| !deliveries.contains_key(**event))
            .collect();
        assert!(
            lost.is_empty(),
            "{} of {} accepted events are lost: {lost:?}",
            lost.len(),
            accepted.len()
        );
        assert_eq!(accepted.len(), self.accepted.len(), "two events were told one id");
        assert_eq!(
            deliveries.len(),
            accepted.len(),
            "something was delivered that nobody was told of"
        );
        let copies: usize = deliveries.values().map(|count| count - 1).sum();
        assert!(
            copies <= most_copies,
            "{copies} copies were delivered, at most {most_copies} were under way"
        );
    }
}

/// A load under way.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    senders: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    next: AtomicUsize,
    outcome: Mutex<Outcome>,
}

/// What the provider was told.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Event id by number of the request, of those that got a 200.
    pub accepted: BTreeMap<usize, String>,
    /// How often it was told 503.
    pub refused: usize,
}

impl Load {
    /// Sends all `requests` from `senders` threads, each to one of `targets` in turn.
    #[must_use]
    pub fn start(targets: Vec<SocketAddr>, requests: Vec<Request>, senders: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let requests = Arc::new(requests);
        let senders = (0..senders)
            .map(|_| {
                let (shared, requests, targets) =
                    (Arc::clone(&shared), Arc::clone(&requests), targets.clone());
                thread::spawn(move || shared.send_all(&requests, &targets))
            })
            .collect();
        Self { shared, senders }
    }

    /// Waits until so many have got a 200.
    #[track_caller]
    pub fn until_accepted(&self, count: usize) {
        until(LONG, &format!("{count} events are accepted"), || {
            self.outcome().accepted.len() >= count
        });
    }

    /// What the provider was told so far.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.shared
            .outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits until every request has got a 200.
    ///
    /// # Panics
    ///
    /// When one got none for a minute.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        for sender in self.senders.drain(..) {
            sender.join().expect("every event is accepted in the end");
        }
        self.outcome()
    }
}

impl Shared {
    fn send_all(&self, requests: &[Request], targets: &[SocketAddr]) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(request) = requests.get(number) else {
                return;
            };
            let event = self.send(request, targets, number);
            let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
            outcome.accepted.insert(number, event);
        }
    }

    fn send(&self, request: &Request, targets: &[SocketAddr], number: usize) -> String {
        let began = Instant::now();
        for attempt in number.. {
            assert!(began.elapsed() < LONG, "event {number} was not accepted");
            match request.try_send(targets[attempt % targets.len()]) {
                Ok(response) if response.status == 200 => return response.text("event_id"),
                Ok(response) => {
                    assert_eq!(response.status, 503, "{response:?}");
                    self.outcome
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .refused += 1;
                }
                // The server is down, or went down meanwhile: a provider tries again.
                Err(_) => {}
            }
            thread::sleep(Duration::from_millis(50));
        }
        unreachable!("the numbers do not end")
    }
}
