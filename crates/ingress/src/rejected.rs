use std::error::Error;

use http::StatusCode;
use posthaste_store::LedgerError;

use crate::body::NoBody;
use crate::problem::Problem;
use crate::scheme::{Conflict, Refusal};

/// When a sender may try again if the ledger is away.
const LEDGER_RETRY_AFTER_SECS: u32 = 5;
/// When a sender may try again if there is no room for its body.
const ROOM_RETRY_AFTER_SECS: u32 = 1;

/// Why an event was not accepted.
pub(crate) enum Rejected {
    HeadersTooLarge { limit: u64 },
    Body { why: NoBody, limit: u64 },
    Unverified(Refusal),
    Ambiguous(Conflict),
    Ledger(LedgerError),
    LedgerTooSlow,
    Panicked,
}

impl Rejected {
    /// Says no to the sender. Whatever was wrong with a signature, the answer is the same.
    pub(crate) fn problem(&self) -> Problem {
        match self {
            Self::HeadersTooLarge { limit } => Problem::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "headers_too_large",
                format!("the headers are larger than {limit} bytes together"),
            )
            .closing(),
            Self::Body {
                why: NoBody::TooLarge,
                limit,
            } => Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "body_too_large",
                format!("the body is larger than {limit} bytes"),
            )
            .closing(),
            Self::Body {
                why: NoBody::NoRoom, ..
            } => Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "no_room",
                "the bodies of other requests leave no room for this one",
            )
            .retry_after(ROOM_RETRY_AFTER_SECS)
            .closing(),
            Self::Body {
                why: NoBody::TooSlow, ..
            } => Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "body_too_slow",
                "the body did not arrive in time",
            )
            .closing(),
            Self::Body {
                why: NoBody::CutOff, ..
            } => Problem::new(
                StatusCode::BAD_REQUEST,
                "body_cut_off",
                "the body ended early or is framed wrongly",
            )
            .closing(),
            Self::Unverified(_) => Problem::new(
                StatusCode::UNAUTHORIZED,
                "invalid_signature",
                "the request is not signed as this source requires",
            ),
            Self::Ambiguous(Conflict { name }) => Problem::new(
                StatusCode::BAD_REQUEST,
                "conflicting_header",
                format!("header {name} is there twice with different values"),
            ),
            Self::Ledger(_) | Self::LedgerTooSlow => Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "ledger_unavailable",
                "the event may not have been recorded; send it again",
            )
            .retry_after(LEDGER_RETRY_AFTER_SECS),
            Self::Panicked => Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "the request could not be served",
            ),
        }
    }

    /// Returns the word for the log where it says more than the code in the answer.
    pub(crate) fn cause(&self) -> Option<&'static str> {
        match self {
            Self::Unverified(refusal) => Some(refusal.as_str()),
            Self::LedgerTooSlow => Some("ledger_too_slow"),
            Self::Ledger(LedgerError::Refused(_)) => Some("ledger_refused"),
            Self::HeadersTooLarge { .. }
            | Self::Body { .. }
            | Self::Ambiguous(_)
            | Self::Ledger(LedgerError::Unavailable(_))
            | Self::Panicked => None,
        }
    }

    pub(crate) fn error(&self) -> Option<&dyn Error> {
        match self {
            Self::Unverified(refusal) => Some(refusal),
            Self::Ambiguous(conflict) => Some(conflict),
            Self::Ledger(error) => Some(error),
            Self::HeadersTooLarge { .. } | Self::Body { .. } | Self::LedgerTooSlow | Self::Panicked => None,
        }
    }
}
