use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName};
use posthaste_jobs::Timestamp;

use super::header::{Conflict, single};
use super::key::{InvalidSecret, Key};
use super::rules::{At, Encoding, Part, Rules};
use crate::json;

/// Why a request was not let in. The log has it; the sender does not learn it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The source has no secret to verify with.
    #[error("there is no secret to verify with")]
    NoSecret,
    /// What the scheme needs is not there, or is empty.
    #[error("{what} is missing")]
    Missing {
        /// Name of the header, or of the value.
        what: String,
    },
    /// A header that may be there once is there with different values.
    #[error("header {name} is there twice with different values")]
    Conflicting {
        /// Name of the header.
        name: HeaderName,
    },
    /// A value cannot be read.
    #[error("{what} cannot be read")]
    Malformed {
        /// Name of the header, or of the value.
        what: String,
    },
    /// No signature was made with a secret of this source over these bytes.
    #[error("no signature matches")]
    Mismatch,
    /// Rightly signed, too long ago.
    #[error("it was signed {}s ago", .by.as_secs())]
    TooOld {
        /// Age by our clock.
        by: Duration,
    },
    /// Rightly signed, with a time that our clock has not reached.
    #[error("it was signed {}s ahead of our clock", .by.as_secs())]
    TooNew {
        /// How far ahead.
        by: Duration,
    },
}

impl Refusal {
    /// Returns a stable word for logs and counts.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::NoSecret => "no_secret",
            Self::Missing { .. } => "missing_header",
            Self::Conflicting { .. } => "conflicting_header",
            Self::Malformed { .. } => "malformed",
            Self::Mismatch => "mismatch",
            Self::TooOld { .. } => "too_old",
            Self::TooNew { .. } => "too_new",
        }
    }
}

impl From<Conflict> for Refusal {
    fn from(Conflict { name }: Conflict) -> Self {
        Self::Conflicting { name }
    }
}

/// Tells requests that were signed with one of a source's secrets from all others.
#[derive(Clone, Debug)]
pub struct Verifier {
    rules: Rules,
    keys: Vec<Key>,
    tolerance: Duration,
}

impl Verifier {
    pub(super) fn new(
        rules: Rules,
        secrets: &[String],
        tolerance: Duration,
    ) -> Result<Self, (usize, InvalidSecret)> {
        let keys = secrets
            .iter()
            .enumerate()
            .map(|(index, secret)| Key::new(&rules, secret).map_err(|error| (index, error)))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            rules,
            keys,
            tolerance,
        })
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Lets a request in if any signature that it carries was made with any secret over exactly this
    /// body, and at a time within the tolerance of `now`.
    ///
    /// The signature is looked at before the time, so that "too old" says something true about the
    /// provider, and not about anybody who can write a number.
    ///
    /// # Errors
    ///
    /// When it is not let in. There is no input for which it panics.
    pub fn verify(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<(), Refusal> {
        if self.keys.is_empty() {
            return Err(Refusal::NoSecret);
        }
        let name = &self.rules.signature.header;
        let value = text(required(headers, name)?, &name[0])?;
        let timestamp = self.timestamp(headers, value, body)?;
        let id = self.signed_id(headers)?;
        let content: Vec<&[u8]> = self
            .rules
            .signed
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.as_bytes(),
                Part::Id => id,
                Part::Timestamp => timestamp.as_deref().unwrap_or_default().as_bytes(),
                Part::Body => body,
            })
            .collect();

        self.check_signature(value, &content)?;
        match timestamp {
            Some(timestamp) => self.check_time(&timestamp, now),
            None => Ok(()),
        }
    }

    fn check_signature(&self, value: &str, content: &[&[u8]]) -> Result<(), Refusal> {
        let mut readable = false;
        for key in &self.keys {
            let signatures: Vec<Vec<u8>> = self
                .rules
                .signature
                .items(value)
                .filter_map(|item| item.strip_prefix(key.prefix()))
                .filter_map(|signature| decode(self.rules.signature.encoding, signature))
                .collect();
            readable |= !signatures.is_empty();
            if key.made_any(&signatures, content) {
                return Ok(());
            }
        }
        Err(match readable {
            true => Refusal::Mismatch,
            false => malformed(self.rules.signature.header[0].as_str()),
        })
    }

    fn check_time(&self, timestamp: &str, now: Timestamp) -> Result<(), Refusal> {
        let signed_at = match timestamp.parse::<i64>() {
            Ok(secs) if timestamp.bytes().all(|byte| byte.is_ascii_digit()) => secs,
            _ => return Err(malformed("timestamp")),
        };
        let now = now.as_secs();
        let by = Duration::from_secs(now.abs_diff(signed_at));
        if by <= self.tolerance {
            Ok(())
        } else if signed_at < now {
            Err(Refusal::TooOld { by })
        } else {
            Err(Refusal::TooNew { by })
        }
    }

    fn timestamp(
        &self,
        headers: &HeaderMap,
        signature: &str,
        body: &[u8],
    ) -> Result<Option<String>, Refusal> {
        let Some(at) = &self.rules.timestamp else {
            return Ok(None);
        };
        let timestamp = match at {
            At::Header(names) => text(required(headers, names)?, &names[0])?.to_owned(),
            At::Item(prefix) => {
                let mut found = self
                    .rules
                    .signature
                    .items(signature)
                    .filter_map(|item| item.strip_prefix(prefix));
                let timestamp = found.next().ok_or_else(|| missing("timestamp"))?;
                if found.any(|other| other != timestamp) {
                    return Err(malformed("timestamp"));
                }
                timestamp.to_owned()
            }
            At::Body(path) => json::look_up(body, path).ok_or_else(|| missing("timestamp"))?,
        };
        Ok(Some(timestamp))
    }

    /// Returns the id where it is part of what is signed.
    fn signed_id<'h>(&self, headers: &'h HeaderMap) -> Result<&'h [u8], Refusal> {
        match &self.rules.id {
            Some(At::Header(names)) if self.rules.signed.contains(&Part::Id) => required(headers, names),
            _ => Ok(b""),
        }
    }
}

fn required<'h>(headers: &'h HeaderMap, names: &[HeaderName]) -> Result<&'h [u8], Refusal> {
    match single(headers, names)? {
        Some(value) if !value.is_empty() => Ok(value),
        _ => Err(missing(names[0].as_str())),
    }
}

fn text<'h>(value: &'h [u8], name: &HeaderName) -> Result<&'h str, Refusal> {
    std::str::from_utf8(value).map_err(|_| malformed(name.as_str()))
}

fn missing(what: &str) -> Refusal {
    Refusal::Missing {
        what: what.to_owned(),
    }
}

fn malformed(what: &str) -> Refusal {
    Refusal::Malformed {
        what: what.to_owned(),
    }
}

/// Decodes strictly: one text for one signature, but for the case of hexadecimal digits.
fn decode(encoding: Encoding, signature: &str) -> Option<Vec<u8>> {
    match encoding {
        Encoding::Hex => hex::decode(signature).ok(),
        Encoding::Base64 => BASE64_STANDARD.decode(signature).ok(),
    }
    .filter(|bytes| !bytes.is_empty())
}
