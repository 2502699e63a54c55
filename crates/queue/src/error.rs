use std::sync::Arc;
use std::time::Duration;

/// Why the queue did not do what it was asked to. It is worth asking again later.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// Redis did not answer in time.
    #[error("redis did not answer within {}s", .0.as_secs())]
    Timeout(Duration),
    /// Redis cannot be reached, or says that it cannot serve: it is loading, or is a replica.
    #[error("redis cannot serve the queue")]
    Unavailable(#[source] redis::RedisError),
    /// Redis failed a moment ago and was not asked.
    #[error("{reason}; it is asked again in {}ms", .retry_in.as_millis())]
    Away {
        /// When it is asked again.
        retry_in: Duration,
        /// How it failed.
        reason: Arc<str>,
    },
    /// Redis does not know the user or the password, or wants one and was given none.
    #[error(
        "redis refuses the user or the password of queue.url; hint: queue.url = \"redis://USER:PASSWORD@HOST\", with %40 for an @ in it"
    )]
    Login(#[source] redis::RedisError),
    /// Redis has no database of this number.
    #[error("redis has no database {number}; hint: without a number queue.url means database 0")]
    NoDatabase {
        /// Its number.
        number: i64,
        /// What it said.
        source: redis::RedisError,
    },
    /// A server that our scripts are not made for.
    #[error("the queue's redis is {found}; hint: it takes Redis 7.0 or later, or Valkey")]
    TooOld {
        /// What it is.
        found: String,
    },
    /// A name of the queue is taken. Nothing was written.
    #[error(
        "redis has something else under the queue's name {key}: a {found}; hint: give the queue a database of its own, as in queue.url = \"redis://HOST/1\""
    )]
    Foreign {
        /// The name.
        key: String,
        /// Its type.
        found: String,
    },
    /// The server is of another kind than the URL says.
    #[error("the queue's redis is {found}; hint: queue.url = \"{hint}\"")]
    Mismatch {
        /// What it is.
        found: &'static str,
        /// The URL for such a one.
        hint: &'static str,
    },
    /// Redis answered that it will not: it is full, a key is of another type, a right is missing.
    #[error("redis refused to {operation}")]
    Refused {
        /// What was asked of it.
        operation: &'static str,
        /// What it said.
        source: redis::RedisError,
    },
}

impl QueueError {
    /// Tells what a person has to mend from what passes by itself.
    #[must_use]
    pub fn is_mistake(&self) -> bool {
        matches!(
            self,
            Self::Mismatch { .. }
                | Self::Login(_)
                | Self::NoDatabase { .. }
                | Self::TooOld { .. }
                | Self::Foreign { .. }
        )
    }
}
