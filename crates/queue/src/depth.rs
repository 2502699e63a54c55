/// How full a queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Depth {
    /// Due, waiting.
    pub ready: u64,
    /// Not due yet.
    pub scheduled: u64,
    /// Fetched, not acknowledged.
    pub leased: u64,
}
