//! Looks up one value in a body that may be JSON.
//!
//! Promises that no body makes it fail or recurse deeper than the path: what is not asked for is
//! skipped without being built. Does not promise to find a value in JSON that is broken elsewhere.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Returns the string at `path`, or the digits of a number there, exactly as written.
///
/// `None` when the body is no JSON object as a whole, or holds something else in that place. A
/// byte-order mark in front is skipped; of a repeated key the last counts, as in most parsers.
pub(crate) fn look_up(body: &[u8], path: &[&str]) -> Option<String> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut json = serde_json::Deserializer::from_slice(body);
    let found = Walk(path).deserialize(&mut json).ok()?;
    json.end().ok()?;
    found
}

struct Walk<'p>(&'p [&'p str]);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            <&RawValue>::deserialize(json).map(|raw| scalar(raw.get()))
        } else {
            json.deserialize_map(self)
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let [wanted, rest @ ..] = self.0 else {
            return Ok(None);
        };
        let mut found = None;
        while let Some(Key(key)) = map.next_key()? {
            if key == *wanted {
                found = map.next_value_seed(Walk(rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

fn scalar(raw: &str) -> Option<String> {
    match raw.as_bytes().first()? {
        b'"' => serde_json::from_str(raw).ok(),
        b'-' | b'0'..=b'9' => Some(raw.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(body: &str) -> Option<String> {
        look_up(body.as_bytes(), &["id"])
    }

    #[test]
    fn a_string_is_found_whatever_stands_around_it() {
        assert_eq!(
            id(r#"{"a":[1,{"id":"no"}],"id":"evt_1","z":1e400}"#).unwrap(),
            "evt_1"
        );
        assert_eq!(id("\u{feff}{\"id\":\"evt_1\"}").unwrap(), "evt_1");
        assert_eq!(id(r#"{"x":"\ud800","id":"evt_1"}"#).unwrap(), "evt_1");
        assert_eq!(id(r#"{"\u0069d":"a\u0000b"}"#).unwrap(), "a\0b");
    }

    #[test]
    fn a_number_keeps_all_its_digits() {
        assert_eq!(id(r#"{"id":9007199254740993}"#).unwrap(), "9007199254740993");
        assert_eq!(id(r#"{"id":-1.50}"#).unwrap(), "-1.50");
    }

    #[test]
    fn a_path_goes_into_objects() {
        let body = br#"{"event":{"type":"message"},"type":"no"}"#;

        assert_eq!(look_up(body, &["event", "type"]).unwrap(), "message");
        assert_eq!(look_up(body, &["type", "event"]), None);
    }

    #[test]
    fn of_a_repeated_key_the_last_counts() {
        assert_eq!(id(r#"{"id":"a","id":"b"}"#).unwrap(), "b");
    }

    #[test]
    fn what_is_no_scalar_in_an_object_is_not_found() {
        for body in [
            "",
            "null",
            "[]",
            "\"id\"",
            "{\"id\":null}",
            "{\"id\":{}}",
            "{\"id\":true}",
            "{\"id\":\"\\ud800\"}",
            "{\"id\":\"a\"} x",
            "{\"id\":\"a\"",
            "{\"id\":NaN}",
        ] {
            assert_eq!(id(body), None, "{body}");
        }
        assert_eq!(look_up(b"{\"id\":\"\xff\"}", &["id"]), None);
    }

    #[test]
    fn nesting_does_not_use_up_the_stack() {
        let deep = |depth: usize| {
            format!(
                "{{\"a\":{}{},\"id\":\"x\"}}",
                "[".repeat(depth),
                "]".repeat(depth)
            )
        };

        assert_eq!(id(&deep(1_000_000)).unwrap(), "x");
        assert_eq!(id(&"[".repeat(1_000_000)), None);
        assert_eq!(id(&"{\"id\":".repeat(1_000_000)), None);
    }
}
