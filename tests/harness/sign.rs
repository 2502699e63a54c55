//! Signatures as the providers document them, computed without our crates.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

/// Seconds since the epoch, moved by `offset_secs`.
///
/// # Panics
///
/// When the machine's clock is before 1970.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the provider's clock is not ours to pass in"
)]
pub fn now(offset_secs: i64) -> i64 {
    let elapsed: Duration = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("it is after 1970");
    i64::try_from(elapsed.as_secs()).expect("it is before the year 292277026596") + offset_secs
}

/// The value of `X-Hub-Signature-256`.
#[must_use]
pub fn github(secret: &str, body: &[u8]) -> String {
    format!("sha256={}", hex::encode(sha256(secret.as_bytes(), &[body])))
}

/// The value of `Stripe-Signature`.
#[must_use]
pub fn stripe(secret: &str, timestamp: i64, body: &[u8]) -> String {
    let mac = sha256(secret.as_bytes(), &[timestamp.to_string().as_bytes(), b".", body]);
    format!("t={timestamp},v1={}", hex::encode(mac))
}

/// The value of `webhook-signature`.
///
/// # Panics
///
/// When `secret` is not `whsec_` and base64.
#[must_use]
pub fn standard(secret: &str, id: &str, timestamp: i64, body: &[u8]) -> String {
    let key = BASE64
        .decode(
            secret
                .strip_prefix("whsec_")
                .expect("a secret begins with whsec_"),
        )
        .expect("a secret is base64");
    let mac = sha256(
        &key,
        &[id.as_bytes(), b".", timestamp.to_string().as_bytes(), b".", body],
    );
    format!("v1,{}", BASE64.encode(mac))
}

/// HMAC with SHA-1, as hex.
#[must_use]
pub fn sha1_hex(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes()).expect("any length is a key");
    mac.update(body);
    hex::encode(mac.finalize().into_bytes())
}

/// HMAC with SHA-512, as base64.
#[must_use]
pub fn sha512_base64(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha512>::new_from_slice(secret.as_bytes()).expect("any length is a key");
    mac.update(body);
    BASE64.encode(mac.finalize().into_bytes())
}

/// A digest to compare bodies by, as hex: shorter in a failure than the bodies.
#[must_use]
pub fn digest(body: &[u8]) -> String {
    hex::encode(Sha256::digest(body))
}

fn sha256(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}
