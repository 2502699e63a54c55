use std::fmt;

/// What a Redis says of itself, as far as it matters to a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Name and version, as in `Redis 7.0.15`.
    pub server: String,
    /// Its `maxmemory-policy`.
    pub policy: String,
    /// Whether and how it keeps an append-only file.
    pub append_only: AppendOnly,
}

/// Whether a Redis keeps a file of all that it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendOnly {
    /// It does not.
    No,
    /// It does, and syncs it by this `appendfsync`, if it tells.
    Yes(Option<String>),
}

impl Inspection {
    /// Tells whether Redis may throw away the queue when its memory is full. The `volatile-` policies throw away only what
    /// expires by itself, which nothing of a queue does.
    /// ([Key eviction](https://redis.io/docs/latest/develop/reference/eviction/))
    #[must_use]
    pub fn evicts(&self) -> bool {
        self.policy.starts_with("allkeys-")
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            server,
            policy,
            append_only,
        } = self;
        write!(f, "{server}, maxmemory-policy {policy}, ")?;
        match append_only {
            AppendOnly::No => {
                f.write_str("appendonly no: what it forgets comes back, for the ledger is the truth")
            }
            AppendOnly::Yes(fsync) => {
                f.write_str("appendonly yes")?;
                if let Some(fsync) = fsync {
                    write!(f, ", appendfsync {fsync}")?;
                }
                f.write_str(": more than the queue needs, for the ledger is the truth")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(policy: &str) -> Inspection {
        Inspection {
            server: "Redis 7.0.15".to_owned(),
            policy: policy.to_owned(),
            append_only: AppendOnly::No,
        }
    }

    #[test]
    fn only_policies_for_all_keys_evict_the_queue() {
        for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random", "allkeys-lrm"] {
            assert!(with(policy).evicts(), "{policy}");
        }
        for policy in ["noeviction", "volatile-lru", "volatile-ttl", "volatile-random"] {
            assert!(!with(policy).evicts(), "{policy}");
        }
    }

    #[test]
    fn one_line_says_what_the_server_is_and_what_that_means() {
        let mut inspection = with("noeviction");
        assert_eq!(
            inspection.to_string(),
            "Redis 7.0.15, maxmemory-policy noeviction, appendonly no: what it forgets comes back, for the ledger is the truth"
        );

        inspection.append_only = AppendOnly::Yes(Some("everysec".to_owned()));
        assert!(
            inspection
                .to_string()
                .contains("appendonly yes, appendfsync everysec: ")
        );
    }
}
