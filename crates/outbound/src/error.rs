use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;

/// A cause, its URL taken out.
type Cause = Box<dyn Error + Send + Sync>;

/// What happened instead of a 2xx. Messages and causes hold no URL, secret or body.
#[derive(thiserror::Error)]
pub enum CallError {
    /// The breaker is open; nothing was sent.
    #[error("circuit is open")]
    CircuitOpen {
        /// When the next probe is due.
        retry_in: Duration,
    },
    /// As many calls as allowed are under way and none ends soon; nothing was sent.
    #[error("endpoint is busy")]
    Busy {
        /// When a turn can be expected, from 250 ms to 30 s.
        retry_in: Duration,
    },
    /// No status came in time. The request may have arrived.
    #[error("no answer within {}s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The host's name could not be resolved; nothing was sent.
    #[error("name could not be resolved")]
    Dns(#[source] Cause),
    /// Nobody took the connection, or not in time; nothing was sent.
    #[error("could not connect")]
    Connect(#[source] Cause),
    /// The certificate or the handshake failed; nothing was sent.
    #[error("TLS failed")]
    Tls(#[source] Cause),
    /// The connection broke, or what came was not HTTP. The request may have arrived.
    #[error("the answer was cut off or was no HTTP")]
    Protocol(#[source] Cause),
    /// Any answer but 2xx.
    #[error("answered {status}{}", .location.as_deref().map(|to| format!(", pointing to {to}")).unwrap_or_default())]
    Status {
        /// Anything from 101 to 999 but 200 to 299.
        status: u16,
        /// What the other side asked for, up to [`MAX_RETRY_AFTER`](crate::MAX_RETRY_AFTER).
        retry_after: Option<Duration>,
        /// What came of the body, at most [`CAPTURE`](crate::CAPTURE) bytes.
        response: Bytes,
        /// The host that `Location` points to, or its scheme where it has no host. It was not called.
        location: Option<String>,
    },
}

/// Prints the message and its causes: a derived form would print the response.
impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        chain(self).skip(1).try_for_each(|cause| write!(f, ": {cause}"))
    }
}

impl CallError {
    /// Tells what became of a request that got no status.
    pub(crate) fn from_transport(error: reqwest::Error) -> Self {
        let error = error.without_url();

        if error.is_dns() {
            Self::Dns(error.into())
        } else if chain(&error).any(is_tls) {
            Self::Tls(error.into())
        } else if error.is_connect() {
            Self::Connect(error.into())
        } else {
            Self::Protocol(error.into())
        }
    }

    /// Whether it speaks against the endpoint rather than against what was sent to it.
    ///
    /// 4xx is about the request, but for 408 and 429: too slow, too much. A redirect is about the
    /// endpoint, which has moved for every delivery alike. `None`: nothing was sent, so it says nothing.
    pub(crate) fn blames_endpoint(&self) -> Option<bool> {
        match self {
            Self::CircuitOpen { .. } | Self::Busy { .. } => None,
            Self::Timeout(_) | Self::Dns(_) | Self::Connect(_) | Self::Tls(_) | Self::Protocol(_) => {
                Some(true)
            }
            Self::Status { status, .. } => Some(matches!(status, 408 | 429) || !(400..500).contains(status)),
        }
    }
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// An I/O error leaves what it wraps, which may be another one, out of its chain of sources.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.is::<rustls::Error>() || wrapped.is_some_and(|inner| is_tls(inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16) -> CallError {
        CallError::Status {
            status,
            retry_after: None,
            response: Bytes::from_static(b"SECRETTOKEN"),
            location: None,
        }
    }

    #[test]
    fn a_refused_payload_does_not_speak_against_the_endpoint() {
        for status in [400, 401, 403, 404, 409, 410, 422, 425, 451, 499] {
            assert_eq!(answered(status).blames_endpoint(), Some(false), "{status}");
        }
        for status in [101, 302, 408, 429, 500, 503, 599, 666] {
            assert_eq!(answered(status).blames_endpoint(), Some(true), "{status}");
        }
    }

    #[test]
    fn no_form_of_an_error_prints_the_response() {
        assert_eq!(
            format!("{} {:?}", answered(500), answered(500)),
            "answered 500 answered 500"
        );
    }
}
