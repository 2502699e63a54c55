//! How values stand in the ledger.

use std::error::Error;
use std::str::FromStr;
use std::time::Duration;

use crate::LedgerError;

/// A hundred years: a longer wait or lease is written as this, so that no sum of times overflows.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Returns a length of time as it is written.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.min(LONGEST).as_millis()).unwrap_or(i64::MAX)
}

/// Returns a length of time as it was read; what is past is zero.
pub(crate) fn duration(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// Returns a count as it was read.
pub(crate) fn count(count: i64) -> u32 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}

/// Replaces U+0000, which PostgreSQL cannot hold in a text.
pub(crate) fn text(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text
    }
}

/// Reads an id, a state, a kind or a queue.
pub(crate) fn parse<T>(text: &str) -> Result<T, LedgerError>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    text.parse()
        .map_err(|error| LedgerError::Refused(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_is_written_as_a_hundred_years() {
        assert_eq!(millis(LONGEST), 3_153_600_000_000);
        assert_eq!(millis(LONGEST + Duration::from_millis(1)), 3_153_600_000_000);
        assert_eq!(millis(Duration::MAX), 3_153_600_000_000);
    }

    #[test]
    fn a_text_loses_only_its_nul_characters() {
        assert_eq!(text("a\0b".to_owned()), "a\u{fffd}b");
        assert_eq!(text("é\n\u{1}".to_owned()), "é\n\u{1}");
    }
}
