use std::time::{Duration, UNIX_EPOCH};

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue};

/// The longest wait that an endpoint can ask for; a longer one counts as this.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(2 * 60 * 60);

/// Returns how long the other side asks us to wait, with `now` in seconds since the epoch.
///
/// Seconds, or an HTTP date; one that is past is no wait. Anything else (negative, a fraction,
/// words) is as good as no header.
pub(crate) fn retry_after(headers: &HeaderMap, now: i64) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER).map(HeaderValue::to_str)?.ok()?.trim();
    let wait = seconds(text).or_else(|| until_date(text, now))?;

    Some(wait.min(MAX_RETRY_AFTER))
}

fn seconds(text: &str) -> Option<Duration> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Digits alone fail to parse only when there are too many of them.
    Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

fn until_date(text: &str, now: i64) -> Option<Duration> {
    let date = httpdate::parse_http_date(text).ok()?;
    let date = date.duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Duration::from_secs(u64::try_from(now).unwrap_or_default());

    Some(date.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT
    const NOW: i64 = 784_111_777;

    fn asked(value: &'static str) -> Option<Duration> {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
        retry_after(&headers, NOW)
    }

    #[test]
    fn seconds_are_read_up_to_two_hours_and_more_counts_as_two_hours() {
        assert_eq!(asked("0"), Some(Duration::ZERO));
        assert_eq!(asked("7200"), Some(MAX_RETRY_AFTER));
        assert_eq!(asked("7201"), Some(MAX_RETRY_AFTER));
        assert_eq!(asked("99999999999999999999999"), Some(MAX_RETRY_AFTER));
    }

    #[test]
    fn a_date_is_read_as_the_wait_until_then_and_a_past_one_as_none() {
        assert_eq!(
            asked("Sun, 06 Nov 1994 08:49:40 GMT"),
            Some(Duration::from_secs(3))
        );
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:36 GMT"), Some(Duration::ZERO));
        assert_eq!(asked("Fri, 31 Dec 9999 23:59:59 GMT"), Some(MAX_RETRY_AFTER));
    }

    #[test]
    fn what_is_neither_is_ignored() {
        for value in ["", "-5", "+5", "1.5", "soon", "5 s", "0x10"] {
            assert_eq!(asked(value), None, "{value:?}");
        }
    }
}
