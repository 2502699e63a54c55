//! What makes two requests the same event.
//!
//! The provider's own id, within its source. Where there is none, the body's digest: a repeated
//! body is then a repeated event.

use http::HeaderMap;
use sha2::{Digest, Sha256};

use crate::json;
use crate::scheme::{At, Conflict, Rules, single};

/// Longest id and type that are kept as they are, in bytes.
const LONGEST: usize = 200;

/// The name of an event within its source, and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) provider_id: String,
    pub(crate) event_type: Option<String>,
}

/// Names an event.
///
/// An id that is too long, not UTF-8 or has control characters, which not every ledger can store,
/// is replaced by its digest; a type like that counts as none. An empty id is none.
///
/// Refuses two different ids or types in one request: whoever could add a header could otherwise
/// make a duplicate look like another event.
pub(crate) fn identify(
    rules: Option<&Rules>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Identity, Conflict> {
    let find = |at: Option<&At>| match at {
        Some(At::Header(names)) => Ok(single(headers, names)?.map(<[u8]>::to_vec)),
        Some(At::Body(path)) => Ok(json::look_up(body, path).map(String::into_bytes)),
        Some(At::Item(_)) | None => Ok(None),
    };
    let id = find(rules.and_then(|rules| rules.id.as_ref()))?;
    let event_type = find(rules.and_then(|rules| rules.event_type.as_ref()))?;
    Ok(Identity {
        provider_id: match id {
            Some(id) if !id.is_empty() => {
                storable(id).unwrap_or_else(|id| format!("id-sha256:{}", digest(&id)))
            }
            _ => format!("sha256:{}", digest(body)),
        },
        event_type: event_type
            .and_then(|event_type| storable(event_type).ok())
            .filter(|event_type| !event_type.is_empty()),
    })
}

/// Returns the text, or the bytes back when they cannot be kept as they are.
fn storable(bytes: Vec<u8>) -> Result<String, Vec<u8>> {
    if bytes.len() > LONGEST {
        return Err(bytes);
    }
    let text = String::from_utf8(bytes).map_err(|error| error.into_bytes())?;
    if text.chars().any(char::is_control) {
        return Err(text.into_bytes());
    }
    Ok(text)
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::Scheme;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn github(id: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("x-github-delivery", HeaderValue::from_bytes(id).unwrap());
        identify(Scheme::Github.rules().as_ref(), &headers, b"")
            .unwrap()
            .provider_id
    }

    fn stripe(body: &[u8]) -> Identity {
        identify(Scheme::Stripe.rules().as_ref(), &HeaderMap::new(), body).unwrap()
    }

    #[test]
    fn an_id_of_200_bytes_is_kept_and_one_of_201_is_not() {
        assert_eq!(github(&[b'a'; 200]), "a".repeat(200));
        assert!(github(&[b'a'; 201]).starts_with("id-sha256:"));
        assert_ne!(github(&[b'a'; 201]), github(&[b'a'; 202]));
    }

    #[test]
    fn an_absent_or_empty_id_is_replaced_by_the_digest_of_the_body() {
        assert_eq!(github(b""), EMPTY);
        assert_eq!(github(b"  "), EMPTY);
        assert_eq!(identify(None, &HeaderMap::new(), b"").unwrap().provider_id, EMPTY);
        assert!(stripe(b"{\"id\":\"\"}").provider_id.starts_with("sha256:"));
        assert!(stripe(b"not json").provider_id.starts_with("sha256:"));
    }

    #[test]
    fn an_id_that_no_text_column_takes_is_replaced_by_its_digest() {
        assert!(github(b"caf\xe9").starts_with("id-sha256:"));
        assert!(
            stripe(br#"{"id":"a\u0000b"}"#)
                .provider_id
                .starts_with("id-sha256:")
        );
    }

    #[test]
    fn ids_that_differ_only_in_case_are_two() {
        assert_ne!(github(b"d-case"), github(b"d-CASE"));
    }

    #[test]
    fn two_ids_in_one_request_are_refused() {
        let name = HeaderName::from_static("x-github-delivery");
        let mut headers = HeaderMap::new();
        headers.append(&name, HeaderValue::from_static("a"));
        headers.append(&name, HeaderValue::from_static("b"));

        let refused = identify(Scheme::Github.rules().as_ref(), &headers, b"");

        assert_eq!(refused, Err(Conflict { name }));
    }

    #[test]
    fn a_type_that_cannot_be_kept_counts_as_none() {
        let long = format!("{{\"type\":\"{}\"}}", "a".repeat(201));

        assert_eq!(
            stripe(br#"{"type":"plan.created"}"#).event_type.unwrap(),
            "plan.created"
        );
        assert_eq!(stripe(br#"{"type":"a\nb"}"#).event_type, None);
        assert_eq!(stripe(br#"{"type":""}"#).event_type, None);
        assert_eq!(stripe(long.as_bytes()).event_type, None);
    }
}
