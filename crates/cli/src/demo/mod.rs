//! `posthaste demo`: the whole story, embedded, in a folder that goes away.
//!
//! Each step is told only after it was seen to happen at the receiver, and the ledger agrees.

mod house;
mod provider;
mod receiver;
mod timeline;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use posthaste_ingress::Scheme;
use posthaste_jobs::{Clock, EventId, JobId, State, Timestamp};
use posthaste_outbound::BreakerState;
use posthaste_store::{JobFilter, JobRow};
use tokio_util::task::TaskTracker;

use house::{ATTEMPTS, COOLDOWN, House};
use provider::Signed;
use receiver::Receiver;
use timeline::Timeline;

use crate::commands::sample;
use crate::post::Answer;

/// Longest wait for any one thing to happen.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the demo; fails when a step was not seen to happen. `payload` is sent in place of our own push.
pub(crate) async fn run(payload: Option<PathBuf>, clock: Clock) -> Result<()> {
    let push = match &payload {
        Some(file) => Bytes::from(
            tokio::fs::read(file)
                .await
                .with_context(|| format!("could not read {}", file.display()))?,
        ),
        None => Bytes::from(sample::body(&Scheme::Github, "push", "")?),
    };
    let mut timeline = Timeline::start();
    timeline.say("Posthaste on its own: ledger in SQLite, queue in the process, nothing else installed.")?;

    let folder = tempfile::tempdir()?;
    let tracker = TaskTracker::new();
    let receiver = Receiver::start(&tracker).await?;
    let house = House::start(folder.path(), &receiver, clock.clone(), &tracker).await?;
    let mut demo = Demo {
        timeline,
        receiver,
        house,
        clock,
    };

    demo.deliver(push)
        .await
        .context("the first chapter did not end as it should")?;
    demo.retry()
        .await
        .context("the second chapter did not end as it should")?;
    demo.break_and_replay()
        .await
        .context("the third chapter did not end as it should")?;

    let seconds = demo.timeline.seconds();
    demo.timeline.say(&format!(
        "\nEverything was seen to happen at the receiver, in {seconds:.1} s."
    ))?;
    demo.house.stop().await;
    Ok(())
}

struct Demo {
    timeline: Timeline,
    receiver: Receiver,
    house: House,
    clock: Clock,
}

impl Demo {
    /// A push is delivered byte for byte; the same again is a duplicate; a forged one is refused.
    async fn deliver(&mut self, body: Bytes) -> Result<()> {
        self.timeline.chapter("A push arrives from GitHub")?;
        let push = Signed::by_github("push", "72d3162e-cc78-11e3-81ab-4c9367dc0958", body, self.now())?;
        let answer = self.send(&push).await?;
        let event = accepted(&answer)?;
        self.timeline.seen(
            "accepted",
            &format!("event {event}, signature verified, committed"),
        )?;

        self.wait_for("/repositories", 1).await?;
        let got = self.receiver.received("/repositories").remove(0);
        ensure!(
            got.body == push.body,
            "the body that arrived is not the body that was sent"
        );
        ensure!(
            got.header("webhook-id") == event.to_string(),
            "the delivery does not carry the event's id"
        );
        ensure!(
            got.header("x-github-event") == "push",
            "GitHub's own header did not arrive"
        );
        Self::verify(&got)?;
        self.job_of(event, State::Succeeded).await?;
        self.timeline.seen(
            "delivered byte for byte",
            &format!("{} bytes, signed anew for the endpoint", got.body.len()),
        )?;

        let again = self.send(&push).await?;
        ensure!(
            again.status == 200 && again.field("status") == "duplicate",
            "the copy was not called a duplicate"
        );
        ensure!(
            again.field("event_id") == event.to_string(),
            "the copy got another id"
        );
        self.timeline
            .seen("the same again: duplicate", "200 for GitHub, no second delivery")?;

        let mut forged = Signed::by_github(
            "push",
            "99999999-cc78-11e3-81ab-4c9367dc0958",
            push.body.clone(),
            self.now(),
        )?;
        forged.body = Bytes::from([&push.body[..], b" "].concat());
        let refused = self.send(&forged).await?;
        ensure!(
            refused.status == 401,
            "a forged event was answered with {}",
            refused.status
        );
        ensure!(
            self.receiver.received("/repositories").len() == 1,
            "something that should not was delivered"
        );
        self.timeline
            .seen("a forged one: refused", "401, one byte more than was signed")?;
        Ok(())
    }

    /// An endpoint that fails twice is tried a third time.
    async fn retry(&mut self) -> Result<()> {
        self.timeline
            .chapter("A payment arrives from Stripe, and the service is restarting")?;
        self.receiver.answers("/payments", &[503, 503, 200]);
        let payment = Signed::by_stripe("payment_intent.succeeded", "evt_demo_payment", self.now())?;
        let event = accepted(&self.send(&payment).await?)?;
        self.wait_for("/payments", 3).await?;
        let job = self.job_of(event, State::Succeeded).await?;
        let attempts = self.house.ledger.attempts(job.id).await?;
        ensure!(
            attempts.len() == 3,
            "{} attempts are recorded, not 3",
            attempts.len()
        );
        for (attempt, got) in attempts.iter().zip(self.receiver.received("/payments")) {
            ensure!(
                attempt.http_status == Some(got.status),
                "an attempt is recorded with another status"
            );
            ensure!(got.body == payment.body, "an attempt carried another body");
            ensure!(
                got.header("webhook-id") == event.to_string(),
                "an attempt carried another id"
            );
            let what = format!("attempt {}: {}", attempt.number, got.status);
            self.timeline.seen(
                &what,
                if got.status == 200 {
                    "delivered"
                } else {
                    "will retry, with backoff"
                },
            )?;
        }
        Ok(())
    }

    /// A dead endpoint opens its breaker; its event is dead-lettered, and replayed once it is well.
    async fn break_and_replay(&mut self) -> Result<()> {
        self.timeline
            .chapter("An invoice arrives, and its service is down for good")?;
        self.receiver.answers("/invoices", &[500]);
        let event = accepted(
            &self
                .send(&Signed::by_stripe(
                    "invoice.paid",
                    "evt_demo_invoice",
                    self.now(),
                )?)
                .await?,
        )?;
        self.wait_for("/invoices", ATTEMPTS as usize).await?;
        let dead = self.job_of(event, State::Dead).await?;
        self.timeline.seen(
            "dead-lettered",
            &format!("{ATTEMPTS} attempts, each answered 500"),
        )?;
        let (_, breaker) = self
            .house
            .endpoints
            .breakers()
            .into_iter()
            .find(|(name, _)| name == "invoices")
            .context("the endpoint has no breaker")?;
        ensure!(
            matches!(breaker, BreakerState::Open { .. }),
            "the breaker is not open"
        );
        self.timeline.seen(
            "its breaker opened",
            &format!("for {} s; nobody else is held up", COOLDOWN.as_secs()),
        )?;

        let second = accepted(
            &self
                .send(&Signed::by_stripe(
                    "invoice.paid",
                    "evt_demo_next_invoice",
                    self.now(),
                )?)
                .await?,
        )?;
        let parked = self.job_of(second, State::Parked).await?;
        ensure!(
            parked.attempts == 0,
            "a parked job has spent {} attempts",
            parked.attempts
        );
        ensure!(
            self.receiver.received("/invoices").len() == ATTEMPTS as usize,
            "a call went through an open breaker"
        );
        self.timeline
            .seen("the next invoice: parked", "no call, no attempt spent")?;

        self.timeline.chapter("The service is well again")?;
        self.receiver.answers("/invoices", &[200]);
        self.wait_for("/invoices", ATTEMPTS as usize + 1).await?;
        self.job_of(second, State::Succeeded).await?;
        self.timeline
            .seen("one probe, breaker closed", "the parked invoice was the probe")?;

        let filter = JobFilter {
            ids: vec![dead.id],
            ..JobFilter::default()
        };
        let replayed: Vec<JobId> = self.house.ledger.replay(&filter, 1).await?;
        ensure!(replayed == [dead.id], "the dead letter was not replayed");
        self.wait_for("/invoices", ATTEMPTS as usize + 2).await?;
        self.job_of(event, State::Succeeded).await?;
        let got = self
            .receiver
            .received("/invoices")
            .pop()
            .context("nothing was received")?;
        ensure!(
            got.header("webhook-id") == event.to_string(),
            "the replay carries another id"
        );
        ensure!(
            got.header("posthaste-replay") == "1",
            "the replay does not say that it is one"
        );
        self.timeline
            .seen("the dead letter: replayed", "delivered, with the same webhook-id")?;
        Ok(())
    }

    async fn send(&self, request: &Signed) -> Result<Answer> {
        request.send(&self.house.webhook(request.source)).await
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    async fn wait_for(&self, path: &str, count: usize) -> Result<()> {
        tokio::time::timeout(PATIENCE, self.receiver.until(path, count))
            .await
            .with_context(|| {
                format!(
                    "{path} did not receive {count} requests within {} s",
                    PATIENCE.as_secs()
                )
            })
    }

    /// Waits until the one job of `event` is in `state`.
    async fn job_of(&self, event: EventId, state: State) -> Result<JobRow> {
        let filter = JobFilter {
            event: Some(event),
            ..JobFilter::default()
        };
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let jobs = self.house.ledger.jobs(&filter, None, 2).await?;
            match &jobs[..] {
                [job] if job.state == state => return Ok(job.clone()),
                [job] if tokio::time::Instant::now() > deadline => {
                    bail!("the job is {} and not {state}", job.state)
                }
                [_] => tokio::time::sleep(Duration::from_millis(10)).await,
                jobs => bail!("the event has {} jobs and not one", jobs.len()),
            }
        }
    }

    /// Verifies a delivery's signature as its receiver would.
    fn verify(got: &receiver::Received) -> Result<()> {
        let signed_at: i64 = got
            .header("webhook-timestamp")
            .parse()
            .context("no webhook-timestamp arrived")?;
        let expected = Scheme::StandardWebhooks.sign(
            house::SIGNING_SECRET,
            got.header("webhook-id"),
            "",
            &got.body,
            Timestamp::from_millis(signed_at * 1000),
        )?;
        let signature = expected
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("webhook-signature"));
        ensure!(
            signature.is_some_and(|(_, value)| value == got.header("webhook-signature")),
            "the delivery's signature does not verify"
        );
        Ok(())
    }
}

/// Reads the event's id from an answer that must say `accepted`.
fn accepted(answer: &Answer) -> Result<EventId> {
    ensure!(answer.status == 200, "the ingress answered {}", answer.status);
    ensure!(
        answer.field("status") == "accepted",
        "the ingress said {:?}",
        answer.field("status")
    );
    Ok(answer.field("event_id").parse()?)
}
