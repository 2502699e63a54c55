use posthaste_jobs::{Decision, chain};

/// A try that did not succeed: what it means for the job, and what is told of it.
///
/// There is no `From`: each handler says what its client's errors mean, in one place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    /// What becomes of the job.
    pub(crate) decision: Decision,
    /// A stable word for the kind of failure, to filter by.
    pub(crate) class: &'static str,
    /// What happened, for people. No payload, no secret.
    pub(crate) message: String,
    /// HTTP status, if there was one.
    pub(crate) http_status: Option<u16>,
    /// The first bytes of the answer, as text.
    pub(crate) response: Option<String>,
}

impl Failure {
    /// Makes a failure that tells the whole chain of `error`.
    pub(crate) fn new(decision: Decision, class: &'static str, error: &dyn std::error::Error) -> Self {
        Self {
            decision,
            class,
            message: chain(error),
            http_status: None,
            response: None,
        }
    }
}

/// What a try that succeeded brought back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Success {
    /// HTTP status, if there was one.
    pub(crate) http_status: Option<u16>,
    /// The first bytes of the answer, as text.
    pub(crate) response: Option<String>,
}
