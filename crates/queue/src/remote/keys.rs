/// The names of a queue's keys, all in one slot of a Redis Cluster.
///
/// apalis-redis's own names where it has one for the thing, though not its types: ours are sorted sets.
pub(crate) struct Keys {
    /// `{queue}:active`, zset: id by place in line.
    pub(crate) ready: String,
    /// `{queue}:scheduled`, zset: id by due time in ms.
    pub(crate) scheduled: String,
    /// `{queue}:inflight`, zset: id by grant.
    pub(crate) leased: String,
    /// `{queue}:grants`, zset: grant by deadline in ms.
    pub(crate) grants: String,
    /// `{queue}:sequence`, integer: places in line and grants.
    pub(crate) sequence: String,
    /// `{queue}:epoch`, string.
    pub(crate) epoch: String,
    /// `{queue}:wake`, channel.
    pub(crate) wake: String,
}

impl Keys {
    pub(crate) fn of(queue: &str) -> Self {
        let tag = format!("{{{queue}}}");
        let config = apalis_redis::Config::default().queue(&tag);
        Self {
            ready: config.active_jobs_list(),
            scheduled: config.scheduled_jobs_set(),
            leased: config.inflight_jobs_set(),
            grants: format!("{tag}:grants"),
            sequence: format!("{tag}:sequence"),
            epoch: format!("{tag}:epoch"),
            wake: format!("{tag}:wake"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_of_a_queue_share_its_hash_tag() {
        let keys = Keys::of("webhooks");

        for key in [
            &keys.ready,
            &keys.scheduled,
            &keys.leased,
            &keys.grants,
            &keys.sequence,
            &keys.epoch,
            &keys.wake,
        ] {
            assert!(key.starts_with("{webhooks}:"), "{key}");
        }
        assert_eq!(keys.ready, "{webhooks}:active");
    }
}
