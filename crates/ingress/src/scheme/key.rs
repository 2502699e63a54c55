use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit, Mac};
use ring::signature::{ED25519, UnparsedPublicKey};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use subtle::ConstantTimeEq;

use super::rules::{Algorithm, HmacAlgorithm, Rules};

/// Secrets are pasted by people: padding may be missing, and the last symbol may carry bits that
/// belong to no byte. The libraries of Standard Webhooks take both.
const LIBERAL: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Why a text cannot be a secret of its scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecret {
    /// Anyone could sign with it.
    #[error("it is empty")]
    Empty,
    /// Copied with a space or a line break; providers give out none that has one.
    #[error("it begins or ends with white space")]
    Untrimmed,
    /// The scheme's secrets are base64.
    #[error("it is not base64")]
    NotBase64,
    /// A public key of another length than Ed25519's 32 bytes.
    #[error("it is not an Ed25519 public key of 32 bytes")]
    NotEd25519,
    /// A public key verifies, and cannot sign.
    #[error("it is a public key, which cannot sign")]
    CannotSign,
}

/// How a secret is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// Its characters are the key.
    Text,
    /// Base64 of the key, perhaps after one of these.
    Base64 {
        /// Tried in order.
        prefixes: &'static [&'static str],
    },
    /// Base64 of a public key, always after this.
    PublicBase64 {
        /// What tells it from a secret.
        prefix: &'static str,
    },
}

impl KeyForm {
    fn takes(self, secret: &str) -> bool {
        match self {
            Self::Text | Self::Base64 { .. } => true,
            Self::PublicBase64 { prefix } => secret.starts_with(prefix),
        }
    }

    fn bytes(self, secret: &str) -> Result<Cow<'_, [u8]>, InvalidSecret> {
        let encoded = match self {
            Self::Text => return Ok(Cow::Borrowed(secret.as_bytes())),
            Self::Base64 { prefixes } => prefixes
                .iter()
                .find_map(|prefix| secret.strip_prefix(prefix))
                .unwrap_or(secret),
            Self::PublicBase64 { prefix } => secret.strip_prefix(prefix).unwrap_or(secret),
        };
        match LIBERAL.decode(encoded) {
            Ok(bytes) => Ok(Cow::Owned(bytes)),
            Err(_) => Err(InvalidSecret::NotBase64),
        }
    }
}

/// A secret, parsed: it can tell whether a signature was made with it.
#[derive(Clone)]
pub(super) struct Key {
    material: Material,
    prefix: Cow<'static, str>,
}

#[derive(Clone)]
enum Material {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha512(Hmac<Sha512>),
    Ed25519(UnparsedPublicKey<[u8; 32]>),
}

impl Key {
    /// Parses a secret by the first method that takes it.
    pub(super) fn new(rules: &Rules, secret: &str) -> Result<Self, InvalidSecret> {
        if secret.is_empty() {
            return Err(InvalidSecret::Empty);
        }
        if secret.trim() != secret {
            return Err(InvalidSecret::Untrimmed);
        }
        let method = rules
            .methods
            .iter()
            .find(|method| method.key.takes(secret))
            .expect("the last method of each scheme takes any text");
        let bytes = method.key.bytes(secret)?;
        if bytes.is_empty() {
            return Err(InvalidSecret::Empty);
        }
        Ok(Self {
            material: Material::new(method.algorithm, &bytes)?,
            prefix: method.prefix.clone(),
        })
    }

    /// What an item that holds a signature of this key begins with.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Tells whether any of `signatures` is this key's over `content`. Takes the same time whichever
    /// byte of a MAC is wrong.
    pub(super) fn made_any(&self, signatures: &[Vec<u8>], content: &[&[u8]]) -> bool {
        if signatures.is_empty() {
            return false;
        }
        match &self.material {
            Material::Ed25519(key) => {
                let content = content.concat();
                signatures
                    .iter()
                    .any(|signature| key.verify(&content, signature).is_ok())
            }
            Material::Sha1(_) | Material::Sha256(_) | Material::Sha512(_) => {
                self.sign(content).is_ok_and(|mac| {
                    signatures
                        .iter()
                        .any(|signature| mac.as_slice().ct_eq(signature).into())
                })
            }
        }
    }

    /// Signs, if it is not a public key.
    pub(super) fn sign(&self, content: &[&[u8]]) -> Result<Vec<u8>, InvalidSecret> {
        match &self.material {
            Material::Sha1(keyed) => Ok(mac(keyed, content)),
            Material::Sha256(keyed) => Ok(mac(keyed, content)),
            Material::Sha512(keyed) => Ok(mac(keyed, content)),
            Material::Ed25519(_) => Err(InvalidSecret::CannotSign),
        }
    }
}

impl Material {
    fn new(algorithm: Algorithm, key: &[u8]) -> Result<Self, InvalidSecret> {
        match algorithm {
            Algorithm::Hmac(HmacAlgorithm::Sha1) => Ok(Self::Sha1(keyed(key))),
            Algorithm::Hmac(HmacAlgorithm::Sha256) => Ok(Self::Sha256(keyed(key))),
            Algorithm::Hmac(HmacAlgorithm::Sha512) => Ok(Self::Sha512(keyed(key))),
            Algorithm::Ed25519 => match <[u8; 32]>::try_from(key) {
                Ok(key) => Ok(Self::Ed25519(UnparsedPublicKey::new(&ED25519, key))),
                Err(_) => Err(InvalidSecret::NotEd25519),
            },
        }
    }
}

fn keyed<M: KeyInit>(key: &[u8]) -> M {
    M::new_from_slice(key).expect("an HMAC takes a key of any length")
}

fn mac<M: Mac + Clone>(keyed: &M, content: &[&[u8]]) -> Vec<u8> {
    let mut mac = keyed.clone();
    for part in content {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}
