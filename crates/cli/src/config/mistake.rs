use std::fmt;

use serde::de::{Expected, Unexpected};

use super::origin::{Origin, Path};
use crate::nearest::nearest;

/// A mistake; the innermost value that was being read gives it its place.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) message: String,
    pub(super) hint: Option<String>,
    pub(super) place: Option<(Origin, Path)>,
}

impl Mistake {
    pub(super) fn new(message: String) -> Self {
        Self {
            message,
            hint: None,
            place: None,
        }
    }

    pub(super) fn at(mut self, origin: &Origin, path: &Path) -> Self {
        self.place.get_or_insert_with(|| (origin.clone(), path.clone()));
        self
    }

    fn unknown(what: &str, name: &str, known: &[&str]) -> Self {
        Self {
            message: format!("unknown {what} {name:?}, known: {}", known.join(", ")),
            hint: nearest(name, known.iter().copied()).map(|near| format!("did you mean {near:?}?")),
            place: None,
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Mistake {}

impl serde::de::Error for Mistake {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    /// Names the type of what was found, never its value: it may be a secret at the wrong place.
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Bool(_) => "true or false",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) => "a whole number",
            Unexpected::Float(_) => "a number with a fraction",
            Unexpected::Str(_) => "a text",
            Unexpected::Seq => "a list",
            Unexpected::Map => "a table",
            Unexpected::UnitVariant => "the word alone",
            _ => "something else",
        };
        Self::new(format!("expected {}, found {found}", in_words(expected)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Str(text) => format!("{text:?}"),
            Unexpected::Signed(number) => number.to_string(),
            Unexpected::Unsigned(number) => number.to_string(),
            Unexpected::Float(number) => number.to_string(),
            other => other.to_string(),
        };
        Self::new(format!("expected {}, found {found}", in_words(expected)))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::unknown("key", name, known)
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Self::unknown("word", name, known)
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(format!("the key {name:?} is missing"))
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::new(format!("the key {name:?} is there twice"))
    }
}

/// Says in words of a configuration what serde and others say in words of Rust.
fn in_words(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    match expected.as_str() {
        "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "newtype variant" | "struct variant" => "a table under this word".to_owned(),
        "a sequence" => "a list in square brackets".to_owned(),
        // As bytesize calls its values.
        "an integer or string" | "parsable string" | "integer overflow" => {
            "a size like \"25MiB\" or a number of bytes".to_owned()
        }
        other if other.starts_with("struct ") => "a table".to_owned(),
        other if other.starts_with("enum ") => "one of the known words".to_owned(),
        _ => expected,
    }
}
