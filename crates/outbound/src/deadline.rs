use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, timeout};

/// How much of a standstill counts at most.
const SLICE: Duration = Duration::from_secs(1);

/// How long something may take, less the time in which this process stood still.
///
/// A process that was stopped (a debugger, a machine that is moved or suspended) finds all its
/// timers run out before it has read what came meanwhile. To blame the endpoints for that would
/// open the circuit of each that had calls under way. So time is counted in slices, and one that
/// took longer than it should counts as one.
pub(crate) struct Deadline {
    left: Duration,
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        Self { left: limit }
    }

    /// Returns what comes of `future`, or nothing if the time runs out first.
    pub(crate) async fn meet<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        while !self.left.is_zero() {
            let slice = self.left.min(SLICE);
            let began = Instant::now();
            let met = timeout(slice, future.as_mut()).await.ok();
            self.left -= began.elapsed().min(slice);
            if met.is_some() {
                return met;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;
    use tokio::task::yield_now;
    use tokio::time::{advance, sleep};

    use super::*;

    const LIMIT: Duration = Duration::from_millis(2500);

    #[tokio::test(start_paused = true)]
    async fn time_runs_out_at_the_limit_and_not_before() {
        let began = Instant::now();

        assert!(Deadline::after(LIMIT).meet(pending::<()>()).await.is_none());

        let took = began.elapsed();
        // tokio's timers are exact to a millisecond, and each slice has one.
        assert!(
            took >= LIMIT && took <= LIMIT + Duration::from_millis(3),
            "{took:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_first_leaves_the_rest_to_what_comes_next() {
        let mut deadline = Deadline::after(LIMIT);
        let began = Instant::now();

        assert!(deadline.meet(sleep(Duration::from_millis(1500))).await.is_some());
        assert!(deadline.meet(pending::<()>()).await.is_none());

        assert!(began.elapsed() <= LIMIT + Duration::from_millis(5));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_came_while_the_process_stood_still_is_read() {
        let (answer, answered) = oneshot::channel();
        let mut deadline = Deadline::after(LIMIT);
        let mut call = pin!(deadline.meet(answered));
        tokio::select! {
            biased;
            _ = &mut call => unreachable!("nothing has answered"),
            () = yield_now() => {}
        }

        advance(Duration::from_secs(60)).await;
        // Whoever reads from the connection runs after the timer has fired.
        tokio::select! {
            biased;
            _ = &mut call => unreachable!("it was blamed for the standstill"),
            () = yield_now() => {}
        }
        answer.send(204).unwrap();

        assert_eq!(call.await, Some(Ok(204)));
    }
}
