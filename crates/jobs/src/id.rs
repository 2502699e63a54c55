use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use ulid::Ulid;

use crate::Timestamp;

/// The text is no id of ours.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is not an id: 26 letters and digits are expected, as in 01JDZ6W2Q8M3T5V7X9YBCDEFGH")]
pub struct ParseIdError {
    text: String,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// Makes an id that sorts by `now`; `chance` is drawn by the caller.
            #[must_use]
            pub fn new(now: Timestamp, chance: u128) -> Self {
                Self(Ulid::from_parts(u64::try_from(now.as_millis()).unwrap_or(0), chance))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Ulid::from_string(text).map(Self).map_err(|_| ParseIdError { text: text.to_owned() })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    };
}

id! {
    /// Names one event: one thing that one source sent us. A receiver sees it as `webhook-id`.
    EventId
}

id! {
    /// Names one job: one effect that we owe.
    JobId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_being_written_and_read() {
        let id = JobId::new(Timestamp::from_millis(1_796_095_930_123), 42);

        assert_eq!(id.to_string().parse::<JobId>().unwrap(), id);
    }

    #[test]
    fn a_later_id_sorts_after_an_earlier_one() {
        let early = EventId::new(Timestamp::from_millis(1), u128::MAX);
        let late = EventId::new(Timestamp::from_millis(2), 0);

        assert!(early.to_string() < late.to_string());
    }

    #[test]
    fn a_text_of_another_length_is_no_id() {
        assert!("01JDZ6W2Q8M3T5V7X9YBCDEFG".parse::<JobId>().is_err());
        assert!("".parse::<JobId>().is_err());
    }
}
