use posthaste_jobs::Lane;

/// The names of a queue's keys, all in one slot of a Redis Cluster.
///
/// apalis-redis's own names where it has one for the thing, though not its types: ours are sorted sets.
pub(crate) struct Keys {
    /// `{queue}:active` for [`Lane::Normal`], `{queue}:active:LANE` for the others, in the order of [`Lane::ALL`];
    /// zset: id by place in line.
    pub(crate) lanes: [String; 4],
    /// `{queue}:scheduled`, zset: id by due time in ms, times 4, plus its lane.
    pub(crate) scheduled: String,
    /// `{queue}:inflight`, zset: id by grant.
    pub(crate) leased: String,
    /// `{queue}:grants`, zset: grant by deadline in ms.
    pub(crate) grants: String,
    /// `{queue}:sequence`, integer: the last place in line or grant.
    pub(crate) sequence: String,
    /// `{queue}:fetched`, hash: whose turn it is, and when somebody last took something.
    pub(crate) fetched: String,
    /// `{queue}:paused`, string: there while nothing is handed out.
    pub(crate) paused: String,
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
            lanes: Lane::ALL.map(|lane| match lane {
                Lane::Normal => config.active_jobs_list(),
                other => format!("{}:{other}", config.active_jobs_list()),
            }),
            scheduled: config.scheduled_jobs_set(),
            leased: config.inflight_jobs_set(),
            grants: format!("{tag}:grants"),
            sequence: format!("{tag}:sequence"),
            fetched: format!("{tag}:fetched"),
            paused: format!("{tag}:paused"),
            epoch: format!("{tag}:epoch"),
            wake: format!("{tag}:wake"),
        }
    }

    /// Each key, with its type as Redis calls it.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&String, &'static str)> {
        let zsets = self
            .lanes
            .iter()
            .chain([&self.scheduled, &self.leased, &self.grants]);
        let strings = [&self.sequence, &self.paused, &self.epoch];
        zsets
            .map(|key| (key, "zset"))
            .chain(strings.map(|key| (key, "string")))
            .chain([(&self.fetched, "hash")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_of_a_queue_share_its_hash_tag() {
        let keys = Keys::of("webhooks");

        for key in keys.all().map(|(key, _)| key).chain([&keys.wake]) {
            assert!(key.starts_with("{webhooks}:"), "{key}");
        }
        assert_eq!(keys.lanes[1], "{webhooks}:active");
        assert_eq!(keys.lanes[2], "{webhooks}:active:retry");
    }
}
