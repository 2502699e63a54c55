//! Signed requests, ready to be written to a socket.
//!
//! All are made before the clock starts, so that signing takes nothing from what is measured.
//! The number of the event stands in its body: whoever receives the body knows which it is.

use clap::ValueEnum;
use hmac::{Hmac, KeyInit as _, Mac as _};
use posthaste_jobs::Timestamp;
use sha2::Sha256;

/// The secret of the source, in the configuration and in the signatures.
pub(crate) const SECRET: &str = "a-secret-for-measuring";

/// Shortest body: everything but the padding, and some of that.
pub(crate) const BODY_MINIMUM: i64 = 128;
/// Longest body.
pub(crate) const BODY_LIMIT: i64 = 1024 * 1024;

const BEFORE_NUMBER: &str = r#"{"id":"evt_"#;
const DIGITS: usize = 10;

/// How events are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scheme {
    Github,
    Stripe,
}

impl Scheme {
    /// Returns the name that the configuration knows it by, also that of the source.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Stripe => "stripe",
        }
    }
}

/// Requests number 0 to `len`, each with another event.
#[derive(Debug)]
pub(crate) struct Messages {
    all: Vec<Message>,
}

#[derive(Debug)]
struct Message {
    request: Vec<u8>,
    body_at: usize,
}

impl Messages {
    /// Writes and signs `count` requests with bodies of `size` bytes. What GitHub calls the event,
    /// `event_type` says for each number; in Stripe's way all are of one type.
    pub(crate) fn new(
        scheme: Scheme,
        count: usize,
        size: usize,
        now: Timestamp,
        event_type: impl Fn(usize) -> String,
    ) -> Self {
        let all = (0..count)
            .map(|number| message(scheme, number, size, now, &event_type(number)))
            .collect();
        Self { all }
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the whole request, head and body.
    pub(crate) fn request(&self, number: usize) -> &[u8] {
        &self.all[number].request
    }

    /// Returns the number of the event whose body this is, byte for byte; `None` if it is none of ours.
    pub(crate) fn number_of(&self, body: &[u8]) -> Option<usize> {
        let digits = body.get(BEFORE_NUMBER.len()..BEFORE_NUMBER.len() + DIGITS)?;
        let number: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
        let message = self.all.get(number)?;
        (&message.request[message.body_at..] == body).then_some(number)
    }
}

fn message(scheme: Scheme, number: usize, size: usize, now: Timestamp, event_type: &str) -> Message {
    let body = body(number, size);
    let headers = match scheme {
        Scheme::Github => format!(
            "x-github-event: {event_type}\r\nx-github-delivery: {number:08x}-0000-4000-8000-000000000000\r\n\
             x-hub-signature-256: sha256={}\r\n",
            signature(&[body.as_bytes()])
        ),
        Scheme::Stripe => {
            let seconds = now.as_secs().to_string();
            let signature = signature(&[seconds.as_bytes(), b".", body.as_bytes()]);
            format!("stripe-signature: t={seconds},v1={signature}\r\n")
        }
    };
    let name = scheme.name();
    let mut request = format!(
        "POST /webhooks/{name} HTTP/1.1\r\nhost: posthaste.test\r\nuser-agent: posthaste-bench\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    let body_at = request.len();
    request.push_str(&body);
    Message {
        request: request.into_bytes(),
        body_at,
    }
}

/// An event as Stripe shapes them; GitHub's scheme does not look inside.
fn body(number: usize, size: usize) -> String {
    let mut body = format!(
        r#"{BEFORE_NUMBER}{number:0DIGITS$}","object":"event","type":"payment_intent.succeeded","padding":""#
    );
    let end = r#""}"#;
    let padding = size.saturating_sub(body.len() + end.len());
    body.extend(std::iter::repeat_n('.', padding));
    body.push_str(end);
    body
}

fn signature(parts: &[&[u8]]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    hex::encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(scheme: Scheme, size: usize) -> Messages {
        let now = Timestamp::from_millis(1_796_095_930_123);
        Messages::new(scheme, 3, size, now, |number| format!("type-{number}"))
    }

    fn body_of(messages: &Messages, number: usize) -> Vec<u8> {
        let message = &messages.all[number];
        message.request[message.body_at..].to_vec()
    }

    #[test]
    fn a_body_has_the_size_asked_for_and_is_json() {
        for size in [128, 1024] {
            let body = body_of(&messages(Scheme::Github, size), 2);

            assert_eq!(body.len(), size);
            let event: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(event["id"], "evt_0000000002");
        }
    }

    #[test]
    fn a_body_is_known_by_its_number() {
        let messages = messages(Scheme::Github, 256);

        assert_eq!(messages.number_of(&body_of(&messages, 2)), Some(2));
    }

    #[test]
    fn a_body_with_one_byte_changed_is_none_of_ours() {
        let messages = messages(Scheme::Github, 256);
        let mut body = body_of(&messages, 2);
        body[200] = b'!';

        assert_eq!(messages.number_of(&body), None);
        assert_eq!(messages.number_of(b""), None);
    }

    #[test]
    fn an_event_is_of_the_type_that_its_number_is_given() {
        let messages = messages(Scheme::Github, 256);
        let request = String::from_utf8(messages.request(2).to_vec()).unwrap();

        assert!(request.contains("\r\nx-github-event: type-2\r\n"), "{request}");
    }

    #[test]
    fn githubs_signature_is_that_of_openssl() {
        // printf 'Hello, World!' | openssl dgst -sha256 -hmac a-secret-for-measuring
        assert_eq!(
            signature(&[b"Hello, World!"]),
            "036983f0da0822f20f59b2793161738785208e176cf430591c88c88ccc1c1e34"
        );
    }

    #[test]
    fn stripes_signature_is_over_time_and_body() {
        let messages = messages(Scheme::Stripe, 256);
        let request = String::from_utf8(messages.request(0).to_vec()).unwrap();
        let mut signed = b"1796095930.".to_vec();
        signed.extend(body_of(&messages, 0));

        let expected = format!("stripe-signature: t=1796095930,v1={}\r\n", signature(&[&signed]));

        assert!(request.contains(&expected), "{request}");
    }
}
