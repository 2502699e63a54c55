use std::sync::Arc;
use std::time::Duration;

use posthaste_jobs::{Clock, Decision, Ending, JobId, Kind, RetryPolicy, WebhookDelivery, chain, end};
use posthaste_outbound::Endpoints;
use posthaste_queue::Ack;
use posthaste_store::{AttemptRecord, Claim, Claimed, Ledger, LedgerError, Settled, Settlement};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::delivery;
use crate::failure::{Failure, Success};
use crate::keeper::{Keeper, LEASE};
use crate::outage::Outage;
use crate::workers::Policies;

/// How long until a job is looked at again whose ending may or may not be written.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Where one job is worked on: claimed, handled, settled. Shared by all jobs of a process.
#[derive(Clone)]
pub struct Desk {
    pub(crate) ledger: Ledger,
    pub(crate) endpoints: Endpoints,
    pub(crate) policies: Policies,
    pub(crate) clock: Clock,
    pub(crate) worker: Arc<str>,
    pub(crate) keeper: Arc<Keeper>,
    /// Whether the ledger is there, as all jobs of the process see it.
    pub(crate) outage: Arc<Outage>,
    /// Cancelled when what runs has to be given back at once.
    pub(crate) abandon: CancellationToken,
}

impl Desk {
    /// Works on one job and returns what its queue should do with the id.
    ///
    /// Never fails: what goes wrong with the job is written in the ledger, and an outage of the ledger
    /// is waited for.
    pub async fn work(&self, id: JobId) -> Ack {
        let claim = self.ledger.claim(id, &self.worker, LEASE).await;
        if claim.is_ok() {
            self.outage.over();
        }
        match claim {
            Ok(Claim::Started(job)) => self.run(*job).await,
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
            Err(error) => Ack::Again(self.outage.failed(Instant::now(), &error, rand::random())),
        }
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
        match job.kind {
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
                    self.outage.over();
                    return settled;
                }
                Err(error @ LedgerError::Unavailable(_)) => {
                    tokio::time::sleep(self.outage.failed(Instant::now(), &error, rand::random())).await;
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
    match ending {
        Ending::Succeeded => {
            info!(job.id = %id, job.kind = %job.kind, job.attempt = attempt, duration_ms, "succeeded")
        }
        Ending::Retrying { wait } => {
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            warn!(job.id = %id, job.kind = %job.kind, job.attempt = attempt, duration_ms, error, wait_ms, "will retry");
        }
        Ending::Parked { wait } => {
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            debug!(job.id = %id, job.kind = %job.kind, error, wait_ms, "parked");
        }
        Ending::Dead(reason) => {
            let reason = reason.as_str();
            error!(job.id = %id, job.kind = %job.kind, job.attempt = attempt, duration_ms, error, reason, "dead letter");
        }
    }
}
