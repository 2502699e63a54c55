//! What became of each event: when it was sent, answered, delivered, and how often.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::messages::Messages;
use crate::percentiles::Percentiles;

/// The book that the load and the receiver write in.
#[derive(Debug)]
pub(crate) struct Tally {
    messages: Arc<Messages>,
    book: Mutex<Book>,
}

#[derive(Debug)]
struct Book {
    events: Vec<Event>,
    progress: Progress,
    fault: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct Event {
    sent: Option<Instant>,
    answered: Option<Instant>,
    /// The event's id in the answer.
    accepted_as: Option<Box<str>>,
    delivered: Option<Instant>,
    /// `webhook-id` of the first delivery.
    delivered_as: Option<Box<str>>,
    deliveries: u32,
}

/// How many events have come how far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) accepted: usize,
    /// Distinct events, however often each was delivered.
    pub(crate) delivered: usize,
}

/// What a range of events adds up to.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) accepted: usize,
    /// Events that were accepted and delivered at least once.
    pub(crate) delivered: usize,
    pub(crate) lost: usize,
    pub(crate) delivered_twice: usize,
    pub(crate) accept_per_s: f64,
    pub(crate) deliver_per_s: f64,
    /// From sending to the 200.
    pub(crate) accepts: Percentiles,
    /// From sending to the receiver.
    pub(crate) deliveries: Percentiles,
}

impl Tally {
    /// Opens a book for these messages.
    pub(crate) fn new(messages: Arc<Messages>) -> Self {
        let events = vec![Event::default(); messages.len()];
        let book = Book {
            events,
            progress: Progress::default(),
            fault: None,
        };
        Self {
            messages,
            book: Mutex::new(book),
        }
    }

    /// Notes that an event was accepted: it was first sent at `sent` and has its 200 at `answered`.
    pub(crate) fn accepted(&self, number: usize, event_id: &str, sent: Instant, answered: Instant) {
        let mut book = self.book();
        let event = &mut book.events[number];
        event.sent = Some(sent);
        event.answered = Some(answered);
        event.accepted_as = Some(event_id.into());
        book.progress.accepted += 1;
    }

    /// Notes a delivery; `false` if it is not one of an event that was sent.
    pub(crate) fn delivered(&self, body: &[u8], webhook_id: &str, at: Instant) -> bool {
        let number = self.messages.number_of(body);
        let mut book = self.book();
        let Some(number) = number else {
            book.blame("a body came that was not sent like this");
            return false;
        };
        let event = &mut book.events[number];
        event.deliveries += 1;
        match event.delivered_as.as_deref() {
            None => {
                event.delivered = Some(at);
                event.delivered_as = Some(webhook_id.into());
                book.progress.delivered += 1;
            }
            Some(first) if first == webhook_id => {}
            Some(_) => book.blame("one event came under two webhook-ids"),
        }
        true
    }

    /// Notes that the system did something wrong; the figure will not stand.
    pub(crate) fn blame(&self, fault: &str) {
        self.book().blame(fault);
    }

    /// Returns how far all have come.
    pub(crate) fn progress(&self) -> Progress {
        self.book().progress
    }

    /// Waits until all that was accepted is delivered, or nothing was for `patience`.
    pub(crate) async fn wait_for_deliveries(&self, patience: Duration) {
        let mut last = (self.progress().delivered, Instant::now());
        loop {
            let Progress { accepted, delivered } = self.progress();
            if delivered >= accepted || last.1.elapsed() > patience {
                return;
            }
            if delivered > last.0 {
                last = (delivered, Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until all of these events are delivered, or none was for `patience`.
    pub(crate) async fn wait_for(&self, numbers: Range<usize>, patience: Duration) {
        let mut last = (0, Instant::now());
        while last.0 < numbers.len() && last.1.elapsed() <= patience {
            let arrived = self.arrived(numbers.clone());
            if arrived > last.0 {
                last = (arrived, Instant::now());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Returns how many of these events are delivered.
    pub(crate) fn arrived(&self, numbers: Range<usize>) -> usize {
        let book = self.book();
        let arrived = book.events[numbers]
            .iter()
            .filter(|event| event.delivered.is_some());
        arrived.count()
    }

    /// Returns, for each of these times in order, how long an event was held up that met it: was
    /// accepted before its end and delivered after its begin, and met none of those before.
    ///
    /// Counted from the begin, or from the 200 where that came later.
    pub(crate) fn held_up(&self, times: &[Range<Instant>]) -> Vec<Duration> {
        let mut longest = vec![Duration::ZERO; times.len()];
        for event in &self.book().events {
            let (Some(answered), Some(delivered)) = (event.answered, event.delivered) else {
                continue;
            };
            let met = |time: &Range<Instant>| answered < time.end && delivered > time.start;
            if let Some(first) = times.iter().position(met) {
                let held = delivered.saturating_duration_since(answered.max(times[first].start));
                longest[first] = longest[first].max(held);
            }
        }
        longest
    }

    /// Returns the longest time in which none of these events arrived for the first time, between the
    /// first that did and the last.
    pub(crate) fn longest_gap(&self, numbers: Range<usize>) -> Duration {
        let book = self.book();
        let mut moments: Vec<_> = book.events[numbers].iter().filter_map(|e| e.delivered).collect();
        moments.sort_unstable();
        let gaps = moments.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.max().unwrap_or_default()
    }

    /// Adds up the events with these numbers; an error if the system did something wrong.
    pub(crate) fn summary(&self, numbers: Range<usize>) -> anyhow::Result<Summary> {
        let mut book = self.book();
        if book
            .events
            .iter()
            .any(|e| e.accepted_as.is_some() && e.delivered_as.is_some() && e.accepted_as != e.delivered_as)
        {
            book.blame("a webhook-id is not the event's id in the answer");
        }
        if let Some(fault) = &book.fault {
            anyhow::bail!("{fault}");
        }
        let accepted = || {
            book.events[numbers.clone()]
                .iter()
                .filter(|event| event.accepted_as.is_some())
        };
        let delivered = || accepted().filter(|event| event.delivered.is_some());
        let since_sent =
            |event: &Event, at: Option<Instant>| Some(at?.saturating_duration_since(event.sent?));
        let first = accepted().filter_map(|event| event.sent).min();
        let rate = |count: usize, last: Option<Instant>| {
            let took = last
                .zip(first)
                .map_or(0.0, |(last, first)| (last - first).as_secs_f64());
            if took > 0.0 { count as f64 / took } else { 0.0 }
        };
        Ok(Summary {
            accepted: accepted().count(),
            delivered: delivered().count(),
            lost: accepted().count() - delivered().count(),
            delivered_twice: accepted().filter(|event| event.deliveries > 1).count(),
            accept_per_s: rate(
                accepted().count(),
                accepted().filter_map(|event| event.answered).max(),
            ),
            deliver_per_s: rate(
                delivered().count(),
                delivered().filter_map(|event| event.delivered).max(),
            ),
            accepts: Percentiles::new(accepted().filter_map(|e| since_sent(e, e.answered)).collect()),
            deliveries: Percentiles::new(delivered().filter_map(|e| since_sent(e, e.delivered)).collect()),
        })
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Keeps the first fault: those after it may follow from it.
    fn blame(&mut self, fault: &str) {
        self.fault.get_or_insert_with(|| fault.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use posthaste_jobs::Timestamp;

    use super::*;
    use crate::messages::Scheme;

    const SECOND: Duration = Duration::from_secs(1);

    fn tally(count: usize) -> Tally {
        let now = Timestamp::from_millis(0);
        let messages = Messages::new(Scheme::Github, count, 128, now, |_| "push".to_owned());
        Tally::new(Arc::new(messages))
    }

    fn body(tally: &Tally, number: usize) -> Vec<u8> {
        let request = tally.messages.request(number);
        request[request.len() - 128..].to_vec()
    }

    #[test]
    fn what_was_accepted_and_not_delivered_is_lost() {
        let tally = tally(3);
        let start = Instant::now();
        for (number, id) in ["a", "b", "c"].into_iter().enumerate() {
            tally.accepted(number, id, start, start + SECOND);
        }
        for (number, id, at) in [(0, "a", 2), (1, "b", 3), (1, "b", 4)] {
            assert!(tally.delivered(&body(&tally, number), id, start + SECOND * at));
        }

        let summary = tally.summary(0..3).unwrap();

        assert_eq!(
            (
                summary.accepted,
                summary.delivered,
                summary.lost,
                summary.delivered_twice
            ),
            (3, 2, 1, 1)
        );
        assert_eq!(summary.accepts.millis(99), Some(1000.0));
        assert_eq!(summary.deliveries.millis(99), Some(3000.0));
        assert_eq!(summary.accept_per_s, 3.0);
    }

    #[test]
    fn what_was_never_accepted_is_not_lost() {
        let tally = tally(1);

        assert_eq!(tally.summary(0..1).unwrap().lost, 0);
    }

    #[test]
    fn an_event_is_held_up_by_the_first_blow_that_it_met() {
        let tally = tally(4);
        let start = Instant::now();
        let at = |seconds: u32| start + SECOND * seconds;
        for (number, id, accepted, delivered) in [
            (0, "a", 1, 2),
            (1, "b", 5, 14),
            (2, "c", 12, 15),
            (3, "d", 26, 27),
        ] {
            tally.accepted(number, id, start, at(accepted));
            tally.delivered(&body(&tally, number), id, at(delivered));
        }

        let held = tally.held_up(&[at(10)..at(13), at(13)..at(14), at(20)..at(26)]);

        assert_eq!(held, [SECOND * 4, Duration::ZERO, Duration::ZERO]);
    }

    #[test]
    fn a_gap_is_between_first_deliveries() {
        let tally = tally(4);
        let start = Instant::now();
        for (number, id, at) in [(0, "a", 1), (1, "b", 9), (2, "c", 2), (0, "a", 5), (3, "d", 30)] {
            tally.delivered(&body(&tally, number), id, start + SECOND * at);
        }

        assert_eq!(tally.longest_gap(0..3), SECOND * 7);
        assert_eq!(tally.longest_gap(0..1), Duration::ZERO);
    }

    #[test]
    fn one_event_under_two_ids_spoils_the_figure() {
        let tally = tally(1);
        let at = Instant::now();
        tally.delivered(&body(&tally, 0), "a", at);
        tally.delivered(&body(&tally, 0), "b", at);

        assert!(tally.summary(0..1).is_err());
    }

    #[test]
    fn an_id_other_than_the_answers_spoils_the_figure() {
        let tally = tally(1);
        let at = Instant::now();
        tally.accepted(0, "a", at, at);
        tally.delivered(&body(&tally, 0), "b", at);

        assert!(tally.summary(0..1).is_err());
    }
}
