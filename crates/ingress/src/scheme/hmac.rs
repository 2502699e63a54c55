use std::fmt;

use http::HeaderName;
use serde::{Deserialize, Serialize};

use super::key::KeyForm;
use super::rules::{Algorithm, At, Encoding, HmacAlgorithm, Method, Part, Rules, Signature};

/// A scheme spelt out: a MAC of the body, keyed with the secret's characters, in a header.
///
/// Nothing is timestamped, so a recorded request stays valid; duplicates are told by their id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HmacScheme {
    /// The header that carries the signature.
    pub header: HeaderField,
    /// Digest inside the MAC.
    pub algorithm: HmacAlgorithm,
    /// How the MAC is written.
    pub encoding: Encoding,
    /// What stands before it, such as `sha256=`.
    #[serde(default)]
    pub prefix: String,
    /// The header that carries the provider's id of the event; without one, the body's digest is it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_header: Option<HeaderField>,
    /// The header that carries the event's type; without one, events have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub type_header: Option<HeaderField>,
}

impl HmacScheme {
    pub(super) fn rules(&self) -> Rules {
        let at = |field: &Option<HeaderField>| {
            field
                .as_ref()
                .map(|HeaderField(name)| At::Header(vec![name.clone()]))
        };
        Rules {
            signed: &[Part::Body],
            signature: Signature {
                header: vec![self.header.0.clone()],
                separator: None,
                encoding: self.encoding,
            },
            methods: vec![Method {
                algorithm: Algorithm::Hmac(self.algorithm),
                key: KeyForm::Text,
                prefix: self.prefix.clone().into(),
            }],
            timestamp: None,
            id: at(&self.id_header),
            event_type: at(&self.type_header),
            user_agent: None,
        }
    }
}

/// A name of a header, as in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HeaderField(HeaderName);

/// The text cannot be a header's name.
#[derive(Debug, thiserror::Error)]
#[error("{name:?} cannot be the name of a header")]
pub struct InvalidHeaderField {
    name: String,
}

impl TryFrom<String> for HeaderField {
    type Error = InvalidHeaderField;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        match HeaderName::try_from(&name) {
            Ok(field) => Ok(Self(field)),
            Err(_) => Err(InvalidHeaderField { name }),
        }
    }
}

impl From<HeaderField> for String {
    fn from(HeaderField(name): HeaderField) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for HeaderField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}
