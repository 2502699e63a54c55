//! How sources sign.
//!
//! A [`Scheme`] is what the configuration names. Behind it stands a description ([`rules::Rules`])
//! of what is signed, with what, and where signature, timestamp, id and type are found; one engine
//! verifies by it and signs by it. Another provider is another description in `presets`.

mod header;
mod hmac;
mod key;
mod presets;
mod rules;
mod sign;
mod verify;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use header::{Conflict, single};
pub use hmac::{HeaderField, HmacScheme, InvalidHeaderField};
pub use key::InvalidSecret;
pub(crate) use rules::{At, Rules};
pub use rules::{Encoding, HmacAlgorithm};
pub use verify::{Refusal, Verifier};

/// How far a signed timestamp may be from our clock, either way, unless the source sets it.
///
/// Five minutes is what Stripe, Slack and Standard Webhooks recommend.
const TOLERANCE: Duration = Duration::from_secs(300);

/// How a source signs, as named in the configuration.
///
/// A text (`"github"`), or a scheme spelt out: `{ hmac = { header = "X-Sig", … } }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// GitHub webhooks.
    Github,
    /// Stripe webhooks.
    Stripe,
    /// Anything that signs by <https://www.standardwebhooks.com>, or by Svix, its forerunner.
    StandardWebhooks,
    /// A MAC of the body in a header.
    Hmac(HmacScheme),
    /// Nothing is signed, and everyone who reaches the source can send to it.
    None,
}

impl Scheme {
    /// Makes what verifies requests signed with any of `secrets`.
    ///
    /// `tolerance` bounds the age of a signed timestamp, and how far ahead it may be. Without any
    /// secret, every request is refused.
    ///
    /// # Errors
    ///
    /// When a secret cannot be one of this scheme, with its place in the list.
    pub fn verifier(
        &self,
        secrets: &[String],
        tolerance: Option<Duration>,
    ) -> Result<Option<Verifier>, (usize, InvalidSecret)> {
        self.rules()
            .map(|rules| Verifier::new(rules, secrets, tolerance.unwrap_or(TOLERANCE)))
            .transpose()
    }

    /// Returns the description that the engine works by; an unsigned source has none.
    pub(crate) fn rules(&self) -> Option<Rules> {
        match self {
            Self::Github => Some(presets::github()),
            Self::Stripe => Some(presets::stripe()),
            Self::StandardWebhooks => Some(presets::standard_webhooks()),
            Self::Hmac(scheme) => Some(scheme.rules()),
            Self::None => None,
        }
    }
}
