use std::borrow::Cow;

use http::HeaderName;
use serde::{Deserialize, Serialize};

use super::key::KeyForm;

/// All that tells one scheme from another.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// What is signed, in order.
    pub(crate) signed: &'static [Part],
    /// Where the signatures are.
    pub(crate) signature: Signature,
    /// How they are made. A secret belongs to the first method that takes it.
    pub(crate) methods: Vec<Method>,
    /// Where the time of signing is, in seconds since the epoch.
    pub(crate) timestamp: Option<At>,
    /// Where the provider's id of the event is.
    pub(crate) id: Option<At>,
    /// Where the type of the event is.
    pub(crate) event_type: Option<At>,
    /// How the provider's sender calls itself.
    pub(crate) user_agent: Option<&'static str>,
}

/// A piece of what is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// These characters.
    Text(&'static str),
    /// The event's id, as sent.
    Id,
    /// The timestamp, as sent.
    Timestamp,
    /// The body, as sent.
    Body,
}

/// The header that carries signatures, and how it is divided.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    /// The first of these that is there.
    pub(crate) header: Vec<HeaderName>,
    /// What stands between two items; without one, the whole value is one item.
    pub(crate) separator: Option<char>,
    /// How the bytes of a signature are written.
    pub(crate) encoding: Encoding,
}

impl Signature {
    /// Divides the header's value. White space around an item means nothing, and an empty item is
    /// none.
    pub(crate) fn items<'v>(&self, value: &'v str) -> impl Iterator<Item = &'v str> {
        let (first, rest) = match self.separator {
            Some(separator) => (None, Some(value.split(separator))),
            None => (Some(value), None),
        };
        first
            .into_iter()
            .chain(rest.into_iter().flatten())
            .map(str::trim_ascii)
            .filter(|item| !item.is_empty())
    }
}

/// One way to make a signature.
#[derive(Clone, Debug)]
pub(crate) struct Method {
    /// What is computed.
    pub(crate) algorithm: Algorithm,
    /// How its secret is written.
    pub(crate) key: KeyForm,
    /// What an item that holds such a signature begins with.
    pub(crate) prefix: Cow<'static, str>,
}

/// What is computed over the signed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// A MAC with a shared secret.
    Hmac(HmacAlgorithm),
    /// A signature that our public key verifies, and that we cannot make.
    Ed25519,
}

/// Digest inside an HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HmacAlgorithm {
    /// 20 bytes.
    Sha1,
    /// 32 bytes.
    Sha256,
    /// 64 bytes.
    Sha512,
}

/// How the bytes of a signature are written in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Hexadecimal digits. Read in either case, written in lower case.
    Hex,
    /// The standard alphabet, padded.
    Base64,
}

/// Where a value is.
#[derive(Clone, Debug)]
pub(crate) enum At {
    /// In the first of these headers that is there.
    Header(Vec<HeaderName>),
    /// In the signature header, the item with this prefix.
    Item(&'static str),
    /// In the JSON body, under these keys.
    Body(&'static [&'static str]),
}
