use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Where a process reads the time of day, handed to whatever needs it, so that tests can set it.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A moment, in milliseconds since 1970-01-01T00:00:00Z. Written and read as RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The latest moment that RFC 3339 can name: 9999-12-31T23:59:59.999Z.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// Makes a moment from milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns whole seconds since the epoch, as webhook signatures count them.
    #[must_use]
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Returns how long after `earlier` this moment is; zero when it is not after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)),
        )
    }
}

impl std::ops::Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)),
        )
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(i64::try_from(after.as_millis()).unwrap_or(i64::MAX)),
            Err(before) => Self(i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |m| -m)),
        }
    }
}

impl From<Timestamp> for SystemTime {
    fn from(moment: Timestamp) -> Self {
        let millis = moment.0.clamp(0, Timestamp::MAX.0);
        UNIX_EPOCH + Duration::from_millis(millis.unsigned_abs())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339_millis(SystemTime::from(*self)).fmt(f)
    }
}

/// The text is no moment in RFC 3339.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is not a time like 2026-12-01T03:00:00Z")]
pub struct ParseTimestampError {
    text: String,
}

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        humantime::parse_rfc3339_weak(text)
            .map(Self::from)
            .map_err(|_| ParseTimestampError {
                text: text.to_owned(),
            })
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_survives_being_written_and_read() {
        let moment = Timestamp::from_millis(1_796_095_930_123);

        let read: Timestamp = moment.to_string().parse().unwrap();

        assert_eq!(read, moment);
    }

    #[test]
    fn a_moment_out_of_range_is_written_as_the_nearest_that_can_be() {
        assert_eq!(
            Timestamp::from_millis(i64::MAX).to_string(),
            "9999-12-31T23:59:59.999Z"
        );
        assert_eq!(Timestamp::from_millis(-1).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn an_earlier_moment_is_no_time_after_a_later_one() {
        assert_eq!(
            Timestamp::from_millis(1).since(Timestamp::from_millis(2)),
            Duration::ZERO
        );
    }
}
