use std::str::FromStr;
use std::time::Duration;

use posthaste_jobs::{Span, Timestamp};

/// A moment as operators write it: `2h` ago, a time in RFC 3339, or a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// This long before now.
    Ago(Duration),
    /// Then.
    At(Timestamp),
}

impl Moment {
    /// Returns the moment as seen from `now`.
    pub(crate) fn from(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Ago(span) => now - span,
            Self::At(moment) => moment,
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(span) = text.parse::<Span>() {
            return Ok(Self::Ago(span.0));
        }
        text.parse()
            .or_else(|_| format!("{text}T00:00:00Z").parse())
            .map(Self::At)
            .map_err(|_| "expected a length of time like 2h, or a time like 2026-12-01T03:00:00Z".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_counts_back_from_now() {
        let moment: Moment = "2h".parse().unwrap();

        assert_eq!(
            moment.from(Timestamp::from_millis(7_200_001)),
            Timestamp::from_millis(1)
        );
    }

    #[test]
    fn a_day_begins_at_midnight_utc() {
        let day: Moment = "2026-12-01".parse().unwrap();

        assert_eq!(day, "2026-12-01T00:00:00Z".parse().unwrap());
        assert!(matches!(day, Moment::At(_)));
    }

    #[test]
    fn another_text_is_no_moment() {
        assert!("yesterday".parse::<Moment>().is_err());
        assert!("".parse::<Moment>().is_err());
    }
}
