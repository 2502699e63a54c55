use anyhow::Result;
use bytes::Bytes;
use posthaste_ingress::Scheme;
use posthaste_jobs::Timestamp;

use super::house::{GITHUB_SECRET, STRIPE_SECRET};
use crate::commands::sample;
use crate::post::{Answer, post};

/// A request as its provider would send it.
pub(super) struct Signed {
    /// The source that it is for.
    pub(super) source: &'static str,
    headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

impl Signed {
    /// GitHub names the event in a header.
    pub(super) fn by_github(event_type: &str, id: &str, body: Bytes, now: Timestamp) -> Result<Self> {
        let headers = Scheme::Github.sign(GITHUB_SECRET, id, event_type, &body, now)?;
        Ok(Self {
            source: "github",
            headers,
            body,
        })
    }

    /// Stripe names the event in its body.
    pub(super) fn by_stripe(event_type: &str, id: &str, now: Timestamp) -> Result<Self> {
        let body = Bytes::from(sample::body(&Scheme::Stripe, event_type, id)?);
        let headers = Scheme::Stripe.sign(STRIPE_SECRET, id, event_type, &body, now)?;
        Ok(Self {
            source: "stripe",
            headers,
            body,
        })
    }

    /// Sends it, and returns what came back.
    pub(super) async fn send(&self, url: &str) -> Result<Answer> {
        post(url, &self.headers, self.body.clone()).await
    }
}
