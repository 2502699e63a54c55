use crate::{Inspection, Survey};

/// What a look at a queue found that can do its work.
#[derive(Clone, Debug)]
pub struct Probe {
    /// What the queue holds, and whether anybody takes it.
    pub survey: Survey,
    /// The Redis that it is on; none for a queue in the process.
    pub server: Option<Inspection>,
}
