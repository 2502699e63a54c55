//! Signs by Standard Webhooks: HMAC-SHA256 over `{id}.{timestamp}.{body}`, in base64, as `v1,…`.

use std::fmt;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderValue;
use sha2::Sha256;

/// The published suite has secrets without padding, and with bits left over in the last symbol.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

const VERSION: &[u8] = b"v1,";
/// The version, and 32 bytes in base64.
const LENGTH: usize = VERSION.len() + 44;

/// A signing secret, its key already set up. Never prints itself.
#[derive(Clone)]
pub(crate) struct Secret(Hmac<Sha256>);

impl Secret {
    /// Reads `whsec_<base64>`; `None` when it is not base64, or empty.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let encoded = text.strip_prefix("whsec_").unwrap_or(text);
        let key = LENIENT.decode(encoded).ok().filter(|key| !key.is_empty())?;

        Hmac::new_from_slice(&key).ok().map(Self)
    }

    /// Returns the value of `webhook-signature`. The body is read where it is.
    pub(crate) fn sign(&self, id: &[u8], timestamp: &[u8], body: &[u8]) -> HeaderValue {
        let mut mac = self.0.clone();
        for part in [id, b".", timestamp, b".", body] {
            mac.update(part);
        }

        let mut value = [0; LENGTH];
        let (version, digest) = value.split_at_mut(VERSION.len());
        version.copy_from_slice(VERSION);
        LENIENT
            .encode_slice(mac.finalize().into_bytes(), digest)
            .expect("44 symbols hold 32 bytes");
        HeaderValue::from_bytes(&value).expect("base64 is visible ASCII")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print_itself() {
        let secret = Secret::parse("whsec_c2VjcmV0").unwrap();

        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }

    #[test]
    fn an_empty_secret_and_one_that_is_not_base64_are_refused() {
        assert!(Secret::parse("").is_none());
        assert!(Secret::parse("whsec_").is_none());
        assert!(Secret::parse("whsec_not base64!").is_none());
    }

    #[test]
    fn padding_and_prefix_make_no_difference() {
        let sign = |text| Secret::parse(text).unwrap().sign(b"id", b"1", b"body");

        assert_eq!(sign("whsec_c2VjcmV0cw=="), sign("c2VjcmV0cw"));
        assert_ne!(sign("whsec_c2VjcmV0cw=="), sign("c2VjcmV0"));
    }
}
