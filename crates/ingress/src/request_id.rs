use http::{HeaderMap, HeaderName, HeaderValue};

/// The header that names a request in its answer and in the log of who sent it.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const LONGEST: usize = 128;

/// Returns the sender's id of the request if it is visible ASCII of a sane length, else one made of
/// `chance`.
pub(crate) fn request_id(headers: &HeaderMap, chance: u64) -> HeaderValue {
    let sane = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        (1..=LONGEST).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    };
    headers
        .get(&X_REQUEST_ID)
        .filter(sane)
        .cloned()
        .unwrap_or_else(|| {
            HeaderValue::from_str(&format!("{chance:016x}")).expect("hexadecimal digits make a header value")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(value: &[u8]) -> HeaderValue {
        let mut headers = HeaderMap::new();
        headers.insert(X_REQUEST_ID, HeaderValue::from_bytes(value).unwrap());
        request_id(&headers, 0xabc)
    }

    #[test]
    fn a_sane_id_is_taken_and_any_other_is_replaced() {
        assert_eq!(answered(b"trace-1"), "trace-1");
        assert_eq!(answered(&[b'a'; 128]), "a".repeat(128));
        for insane in [&[b'a'; 129][..], b"", b"a b", b"caf\xe9"] {
            assert_eq!(answered(insane), "0000000000000abc");
        }
        assert_eq!(request_id(&HeaderMap::new(), 1), "0000000000000001");
    }
}
