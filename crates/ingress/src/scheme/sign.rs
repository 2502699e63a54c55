use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderName;
use posthaste_jobs::Timestamp;

use super::Scheme;
use super::key::{InvalidSecret, Key};
use super::rules::{At, Encoding, Part, Rules};

impl Scheme {
    /// Returns the headers of a realistic request with this body, signed at `now`.
    ///
    /// `id` and `event_type` go where the scheme has a header for them; a scheme that keeps them in
    /// the body takes them from there. An unsigned scheme makes no use of the secret.
    ///
    /// # Errors
    ///
    /// When `secret` cannot sign by this scheme.
    pub fn sign(
        &self,
        secret: &str,
        id: &str,
        event_type: &str,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Vec<(String, String)>, InvalidSecret> {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let Some(rules) = self.rules() else {
            return Ok(headers);
        };
        let key = Key::new(&rules, secret)?;
        let timestamp = now.as_secs().to_string();
        let content: Vec<&[u8]> = rules
            .signed
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.as_bytes(),
                Part::Id => id.as_bytes(),
                Part::Timestamp => timestamp.as_bytes(),
                Part::Body => body,
            })
            .collect();
        let signature = encode(rules.signature.encoding, &key.sign(&content)?);

        let mut set =
            |name: &HeaderName, value: &str| headers.push((name.as_str().to_owned(), value.to_owned()));
        if let Some(user_agent) = rules.user_agent {
            set(&http::header::USER_AGENT, user_agent);
        }
        for (at, value) in [
            (&rules.id, id),
            (&rules.event_type, event_type),
            (&rules.timestamp, &timestamp),
        ] {
            if let Some(At::Header(names)) = at {
                set(&names[0], value);
            }
        }
        set(
            &rules.signature.header[0],
            &header_value(&rules, &timestamp, key.prefix(), &signature),
        );
        Ok(headers)
    }
}

fn header_value(rules: &Rules, timestamp: &str, prefix: &str, signature: &str) -> String {
    match (&rules.timestamp, rules.signature.separator) {
        (Some(At::Item(name)), Some(separator)) => format!("{name}{timestamp}{separator}{prefix}{signature}"),
        _ => format!("{prefix}{signature}"),
    }
}

fn encode(encoding: Encoding, signature: &[u8]) -> String {
    match encoding {
        Encoding::Hex => hex::encode(signature),
        Encoding::Base64 => BASE64_STANDARD.encode(signature),
    }
}
