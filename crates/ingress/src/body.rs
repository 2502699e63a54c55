//! Reads a body within its limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;

/// Bytes of bodies that may be held over all requests at once.
#[derive(Debug)]
pub(crate) struct Budget {
    free: AtomicU64,
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            free: AtomicU64::new(bytes),
        })
    }

    fn has(&self, bytes: u64) -> bool {
        self.free.load(Ordering::Acquire) >= bytes
    }

    fn take(&self, bytes: u64) -> Result<(), NoBody> {
        self.free
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| {
                free.checked_sub(bytes)
            })
            .map(|_| ())
            .map_err(|_| NoBody::NoRoom)
    }
}

/// A part of the budget; it goes back on drop.
#[derive(Debug)]
struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Reservation {
    fn grow(&mut self, bytes: u64) -> Result<(), NoBody> {
        self.budget.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.free.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

/// A body as received, and its part of the budget for as long as it is held.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    _reservation: Reservation,
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoBody {
    /// It is longer than the limit.
    TooLarge,
    /// The bodies of other requests leave no room for it.
    NoRoom,
    /// It did not arrive in time.
    TooSlow,
    /// The connection ended before it did, or it was framed wrongly.
    CutOff,
}

/// Reads a body of at most `limit` bytes within `time`.
///
/// A body that declares its length is judged before a byte of it is read. Room is taken as bytes arrive,
/// not as they are declared: a client that declares much and sends nothing keeps nobody out.
pub(crate) async fn read(
    body: Body,
    limit: u64,
    budget: &Arc<Budget>,
    time: Duration,
) -> Result<Received, NoBody> {
    let declared = body.size_hint().exact();
    if body.size_hint().lower() > limit {
        return Err(NoBody::TooLarge);
    }
    if !budget.has(declared.unwrap_or(0)) {
        return Err(NoBody::NoRoom);
    }
    let mut reservation = Reservation {
        budget: Arc::clone(budget),
        bytes: 0,
    };
    let bytes = tokio::time::timeout(time, collect(body, limit, &mut reservation))
        .await
        .map_err(|_| NoBody::TooSlow)??;
    Ok(Received {
        bytes,
        _reservation: reservation,
    })
}

/// Gathers the frames; a body that came in one piece is not copied.
async fn collect(mut body: Body, limit: u64, reservation: &mut Reservation) -> Result<Bytes, NoBody> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| NoBody::CutOff)?.into_data() else {
            continue;
        };
        length += piece.len() as u64;
        if length > limit {
            return Err(NoBody::TooLarge);
        }
        reservation.grow(piece.len() as u64)?;
        if first.is_empty() {
            first = piece;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&first);
        }
        rest.extend_from_slice(&piece);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(5);

    async fn get(body: impl Into<Body>, limit: u64, budget: &Arc<Budget>) -> Result<Received, NoBody> {
        read(body.into(), limit, budget, TIME).await
    }

    #[tokio::test]
    async fn a_body_at_the_limit_is_read_and_one_byte_past_it_is_not() {
        let budget = Budget::new(1000);

        assert_eq!(get("abcd", 4, &budget).await.unwrap().bytes, "abcd");
        assert_eq!(get("abcde", 4, &budget).await.unwrap_err(), NoBody::TooLarge);
    }

    #[tokio::test]
    async fn the_budget_is_used_up_at_its_last_byte_and_given_back_on_drop() {
        let budget = Budget::new(10);
        let held = get("123456", 10, &budget).await.unwrap();

        assert_eq!(get("12345", 10, &budget).await.unwrap_err(), NoBody::NoRoom);
        let rest = get("1234", 10, &budget).await.unwrap();
        assert_eq!(get("1", 10, &budget).await.unwrap_err(), NoBody::NoRoom);
        drop((held, rest));

        assert!(get("1234567890", 10, &budget).await.is_ok());
    }
}
