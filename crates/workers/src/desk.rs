use std::sync::Arc;
use std::time::Duration;

use posthaste_jobs::{Clock, Decision, Ending, JobId, Kind, RetryPolicy, WebhookDelivery, chain, end};
use posthaste_outbound::Endpoints;
use posthaste_queue::Ack;
use posthaste_store::{AttemptRecord, Claim, Claimed, Company, Ledger, LedgerError, Settled, Settlement};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::delivery;
use crate::failure::{Failure, Success};
use crate::keeper::{Keeper, LEASE};
use crate::progress::Progress;
use crate::quarantine::Quarantine;
use crate::workers::Policies;

/// How long until a job is looked at again whose ending may or may not be written.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long until a job is looked at again that the ledger would not let anybody have.
const REFUSED: Duration = Duration::from_secs(60);

/// Where one job is worked on: claimed, handled, settled. Shared by all jobs of a process.
#[derive(Clone)]
pub struct Desk {
    pub(crate) ledger: Ledger,
    pub(crate) endpoints: Endpoints,
    pub(crate) policies: Policies,
    pub(crate) clock: Clock,
    pub(crate) worker: Arc<str>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) quarantine: Quarantine,
    pub(crate) progress: Progress,
    /// Cancelled when what runs has to be given back at once.
    pub(crate) abandon: CancellationToken,
}

impl Desk {
    /// Works on one job and returns what its queue should do with the id.
    ///
    /// Never fails: what goes wrong with the job is written in the ledger, and an outage of the ledger
    /// is waited for.
    pub async fn work(&self, id: JobId) -> Ack {
        let abandon = &self.abandon;
        let Some(beside) = abandon.run_until_cancelled(self.quarantine.beside_others()).await else {
            return Ack::Back;
        };
        if let Some(ack) = self.work_on(id, Company::Others).await {
            return ack;
        }
        drop(beside);
        warn!(job.id = %id, "has lost two workers, and waits until it can run by itself");
        let Some(_alone) = abandon.run_until_cancelled(self.quarantine.alone()).await else {
            return Ack::Back;
        };
        self.work_on(id, Company::Alone)
            .await
            .unwrap_or(Ack::Again(LOOK_AGAIN))
    }

    /// Returns nothing if the job is to be worked on alone.
    async fn work_on(&self, id: JobId, company: Company) -> Option<Ack> {
        let claim = self.ledger.claim(id, &self.worker, LEASE, company).await;
        if claim.is_ok() {
            self.progress.ledger.over();
        }
        Some(match claim {
            Ok(Claim::Started(job)) => self.run(*job).await,
            Ok(Claim::Suspect) => return None,
            Ok(Claim::Finished(state)) => {
                debug!(job.id = %id, job.state = %state, "had ended already");
                Ack::Done
            }
            Ok(Claim::NotDue(wait) | Claim::InProgress(wait)) => Ack::Again(wait),
            Ok(Claim::Crashed) => {
                error!(job.id = %id, "dead letter: crashed its workers too often");
                Ack::Done
            }
            Ok(Claim::Unknown) => {
                warn!(job.id = %id, "dropped an id that the ledger does not know");
                Ack::Done
            }
            Err(error @ LedgerError::Refused(_)) => {
                error!(job.id = %id, error = chain(&error), "the ledger refused a claim");
                Ack::Again(REFUSED)
            }
            Err(error @ LedgerError::Unavailable(_)) => Ack::Again(self.progress.ledger.failed(
                Instant::now(),
                &error,
                rand::random(),
            )),
        })
    }

    async fn run(&self, job: Claimed) -> Ack {
        let lease = job.lease;
        self.keeper.hold(lease);
        let ack = match self.abandon.run_until_cancelled(self.attempt(job)).await {
            Some(ack) => ack,
            None => {
                // A lease that cannot be given back runs out by itself.
                if let Err(error) = self.ledger.give_back(&[lease]).await {
                    warn!(job.id = %lease.job, error = chain(&error), "could not give a job back");
                }
                Ack::Back
            }
        };
        self.keeper.release(lease);
        ack
    }

    /// Makes one attempt and settles it.
    async fn attempt(&self, job: Claimed) -> Ack {
        let started_at = (self.clock)();
        let began = Instant::now();
        let (retry, result) = self.handle(&job).await;
        let duration = began.elapsed();

        let decided = result.as_ref().map(|_| ()).map_err(|failure| failure.decision);
        let ending = end(decided, job.attempt, &retry, rand::random());
        let record = AttemptRecord {
            number: job.attempt.get(),
            started_at,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            outcome: if result.is_ok() { "succeeded" } else { "failed" }.to_owned(),
            error_class: result.as_ref().err().map(|failure| failure.class.to_owned()),
            error: result.as_ref().err().map(|failure| failure.message.clone()),
            http_status: result
                .as_ref()
                .map_or_else(|failure| failure.http_status, |success| success.http_status),
            response: result.as_ref().map_or_else(
                |failure| failure.response.clone(),
                |success| success.response.clone(),
            ),
            worker: self.worker.to_string(),
        };
        let settlement = Settlement {
            lease: job.lease,
            ending,
            attempt: (!matches!(ending, Ending::Parked { .. })).then_some(record),
            error: result.as_ref().err().map(|failure| failure.message.clone()),
        };
        let settled = self.settle(settlement).await;
        tell(&job, ending, &result, duration, settled);
        match (settled, ending) {
            (Settled::Written, Ending::Retrying { wait } | Ending::Parked { wait }) => Ack::Again(wait),
            (Settled::Written, Ending::Succeeded | Ending::Dead(_)) => Ack::Done,
            // Somebody else has it, or our first answer was lost after the commit: the next claim finds out.
            (Settled::LeaseLost, _) => Ack::Again(LOOK_AGAIN),
        }
    }

    /// Calls the handler of the job's kind; returns its retry policy with what came of it.
    async fn handle(&self, job: &Claimed) -> (RetryPolicy, Result<Success, Failure>) {
        let kind = match &job.kind {
            Ok(kind) => *kind,
            Err(unknown) => {
                let failure = Failure::new(Decision::DeadLetter, "kind", unknown);
                return (RetryPolicy::default(), Err(failure));
            }
        };
        match kind {
            Kind::WebhookDelivery => {
                let payload: WebhookDelivery = match serde_json::from_str(&job.payload) {
                    Ok(payload) => payload,
                    Err(error) => {
                        let failure = Failure::new(Decision::DeadLetter, "payload", &error);
                        return (RetryPolicy::default(), Err(failure));
                    }
                };
                let retry = self
                    .policies
                    .borrow()
                    .get(&payload.endpoint)
                    .cloned()
                    .unwrap_or_default();
                let Some(event) = &job.event else {
                    return (
                        retry,
                        Err(Failure::new(Decision::DeadLetter, "no_event", &NoEvent)),
                    );
                };
                let now = (self.clock)();
                (
                    retry,
                    delivery::deliver(job, &payload, event, &self.endpoints, now).await,
                )
            }
        }
    }

    /// Writes the ending, however long the ledger is away: what was delivered must not be delivered again.
    async fn settle(&self, mut settlement: Settlement) -> Settled {
        loop {
            match self.ledger.settle(settlement.clone()).await {
                Ok(settled) => {
                    self.progress.ledger.over();
                    return settled;
                }
                Err(error @ LedgerError::Unavailable(_)) => {
                    tokio::time::sleep(
                        self.progress
                            .ledger
                            .failed(Instant::now(), &error, rand::random()),
                    )
                    .await;
                }
                Err(error @ LedgerError::Refused(_)) => {
                    let id = settlement.lease.job;
                    error!(job.id = %id, error = chain(&error), "the ledger refused an ending");
                    if !without_texts(&mut settlement) {
                        return Settled::LeaseLost;
                    }
                }
            }
        }
    }
}

/// Takes away what came from outside, which is all that a ledger could object to; tells whether there was any.
fn without_texts(settlement: &mut Settlement) -> bool {
    let attempt = settlement.attempt.as_mut();
    let texts = attempt.map_or((None, None), |attempt| {
        (attempt.error.take(), attempt.response.take())
    });
    settlement.error.take().or(texts.0).or(texts.1).is_some()
}

/// The event that a delivery is about is not in the ledger.
#[derive(Debug, thiserror::Error)]
#[error("the event of this delivery is not in the ledger")]
struct NoEvent;

/// Writes the one log line of an ending.
fn tell(
    job: &Claimed,
    ending: Ending,
    result: &Result<Success, Failure>,
    duration: Duration,
    settled: Settled,
) {
    let id = job.lease.job;
    let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let attempt = job.attempt.get();
    if settled == Settled::LeaseLost {
        warn!(job.id = %id, job.attempt = attempt, duration_ms, "ended after its lease was lost: not recorded");
        return;
    }
    let error = result.as_ref().err().map_or("", |failure| failure.class);
    let kind = job.kind.as_ref().map_or("unknown", |kind| kind.as_str());
    match ending {
        Ending::Succeeded => {
            info!(job.id = %id, job.kind = kind, job.attempt = attempt, duration_ms, "succeeded")
        }
        Ending::Retrying { wait } => {
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            warn!(job.id = %id, job.kind = kind, job.attempt = attempt, duration_ms, error, wait_ms, "will retry");
        }
        Ending::Parked { wait } => {
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            debug!(job.id = %id, job.kind = kind, error, wait_ms, "parked");
        }
        Ending::Dead(reason) => {
            let reason = reason.as_str();
            error!(job.id = %id, job.kind = kind, job.attempt = attempt, duration_ms, error, reason, "dead letter");
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_jobs::{State, Timestamp};
    use posthaste_store::JobRow;

    use super::*;
    use crate::house::House;

    const HOUR: i64 = 3_600_000;

    fn off_by(millis: i64) -> Clock {
        Arc::new(move || Timestamp::from_millis(1_796_095_930_123 + millis))
    }

    async fn row(house: &House, job: JobId) -> JobRow {
        house.ledger.job(job).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_clock_that_is_an_hour_off_moves_no_lease_and_no_schedule() {
        for off in [-HOUR, 0, HOUR] {
            let house = House::new().await;
            let job = house.accept().await;
            let desk = house.desk(off_by(off));

            let Ack::Again(wait) = desk.work(job).await else {
                panic!("an endpoint that is not there is tried again");
            };

            let longest = RetryPolicy::default().base.0;
            assert!(wait > Duration::ZERO && wait <= longest, "{off}: {wait:?}");
            let left = house
                .ledger
                .unfinished(crate::house::NAME, None, 1)
                .await
                .unwrap()[0]
                .wait;
            assert!(left <= longest, "{off}: {left:?}");
            assert!(matches!(
                house
                    .ledger
                    .claim(job, "other", LEASE, Company::Others)
                    .await
                    .unwrap(),
                Claim::NotDue(_)
            ));
        }
    }

    #[tokio::test]
    async fn a_suspect_waits_until_nothing_else_runs_and_nothing_begins_beside_it() {
        let house = House::new().await;
        let (suspect, other) = (house.accept().await, house.accept().await);
        house.lose_workers(suspect, 2).await;
        let desk = house.desk(off_by(0));
        let running = desk.quarantine.beside_others().await;

        let mut working = Box::pin(desk.work(suspect));
        let early = tokio::time::timeout(Duration::from_millis(200), working.as_mut()).await;
        assert!(early.is_err(), "it ran beside another");
        let neighbour = tokio::time::timeout(Duration::from_millis(200), desk.work(other)).await;
        assert!(neighbour.is_err(), "another began before it");
        assert_eq!(row(&house, other).await.state, State::Queued);
        drop(running);

        assert!(matches!(working.await, Ack::Again(_)));
        assert_eq!(row(&house, suspect).await.attempts, 1);
    }

    #[tokio::test]
    async fn a_stop_gives_back_what_waits_to_run_alone_and_charges_nothing() {
        let house = House::new().await;
        let suspect = house.accept().await;
        house.lose_workers(suspect, 2).await;
        let desk = house.desk(off_by(0));
        let _running = desk.quarantine.beside_others().await;
        desk.abandon.cancel();

        assert_eq!(desk.work(suspect).await, Ack::Back);

        assert!(matches!(
            house
                .ledger
                .claim(suspect, "next", LEASE, Company::Alone)
                .await
                .unwrap(),
            Claim::Started(_)
        ));
    }

    #[tokio::test]
    async fn a_job_that_has_lost_three_workers_is_a_dead_letter() {
        let house = House::new().await;
        let job = house.accept().await;
        house.lose_workers(job, 3).await;

        assert_eq!(house.desk(off_by(0)).work(job).await, Ack::Done);

        let row = row(&house, job).await;
        assert_eq!(
            (row.state, row.dead_reason.as_deref()),
            (State::Dead, Some("crashed"))
        );
        assert_eq!(row.attempts, 0);
    }

    #[tokio::test]
    async fn a_payload_that_does_not_decode_is_a_dead_letter() {
        let house = House::new().await;
        for payload in ["", "{}", "[", "null", r#"{"endpoint":7}"#] {
            let job = house.accept_with(payload).await;

            assert_eq!(house.desk(off_by(0)).work(job).await, Ack::Done, "{payload}");

            let row = row(&house, job).await;
            assert_eq!(
                (row.state, row.error_class.as_deref()),
                (State::Dead, Some("payload"))
            );
        }
    }

    #[tokio::test]
    async fn an_id_that_the_ledger_does_not_know_is_dropped() {
        let house = House::new().await;
        let stranger = JobId::new(Timestamp::from_millis(1), 1);

        assert_eq!(house.desk(off_by(0)).work(stranger).await, Ack::Done);
    }
}
