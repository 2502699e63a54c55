use std::fmt;

use bytes::Bytes;
use http::HeaderMap;

/// How much of an answer's body is read and kept; the connection is closed on the rest.
pub const CAPTURE: usize = 16 * 1024;

/// What to deliver. The call adds length, host and the Standard Webhooks headers.
#[derive(Clone)]
pub struct Delivery {
    /// `webhook-id`, and what the signature is over. Of it, only visible ASCII is used.
    pub id: String,
    /// Seconds since the epoch: `webhook-timestamp`, and the present for a `Retry-After` that is a date.
    pub timestamp: i64,
    /// Ready to send, hop-by-hop and credential headers already dropped by the caller.
    ///
    /// Headers that would contradict how the body is sent are dropped, and signatures by the same
    /// scheme that are not ours.
    pub headers: HeaderMap,
    /// Sent as it is.
    pub body: Bytes,
}

/// Leaves out headers and body, which are other people's.
impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("id", &self.id)
            .field("timestamp", &self.timestamp)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// What came back with a 2xx.
#[derive(Clone)]
pub struct Receipt {
    /// 200 to 299.
    pub status: u16,
    /// What came of the body, at most [`CAPTURE`] bytes, not decompressed.
    ///
    /// The status alone makes a receipt: a body that breaks off, or is not through in time, is kept
    /// as far as it came.
    pub response: Bytes,
}

/// Leaves out the body.
impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receipt")
            .field("status", &self.status)
            .field("response_bytes", &self.response.len())
            .finish()
    }
}
