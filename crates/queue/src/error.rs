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
    #[error("redis is away, and is asked again in {}ms", .retry_in.as_millis())]
    Away {
        /// When it is asked again.
        retry_in: Duration,
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
