use std::time::Duration;

/// How often the queue looks at what, and how long a lease is. The default is what a service runs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a fetched id stays away from other workers after its process was last heard of.
    pub lease: Duration,
    /// How often a process renews the leases that it holds; several times within `lease`.
    pub renew: Duration,
    /// How often leases that ran out are looked for.
    pub recover: Duration,
    /// How late a scheduled id may become ready. The engine in the process is never late.
    pub promote: Duration,
    /// How often an idle worker looks for work that nobody woke it for.
    pub look: Duration,
    /// When an id comes back whose handler failed or panicked instead of answering.
    pub failed: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(10),
            renew: Duration::from_secs(3),
            recover: Duration::from_secs(1),
            promote: Duration::from_millis(100),
            look: Duration::from_secs(1),
            failed: Duration::from_secs(5),
        }
    }
}
