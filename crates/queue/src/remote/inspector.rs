use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use redis::RedisResult;
use tracing::{error, info};

use super::connection::Connection;
use super::keys::Keys;
use super::scripts;
use super::servers::Servers;
use crate::{AppendOnly, Inspection, QueueError};

/// The first Redis that our scripts are made for. Each Valkey is later.
const FIRST_MAJOR: u32 = 7;

/// Looks at a server before anything is written to it, and says what it found when that is news.
pub(crate) struct Inspector {
    servers: Arc<Servers>,
    /// Each key, with the type that is ours.
    keys: Vec<(String, &'static str)>,
    last: Mutex<Option<Inspection>>,
}

/// What a server answered.
struct Facts {
    info: HashMap<String, String>,
    /// A key of ours that is somebody else's, by its type.
    foreign: Option<(String, String)>,
}

impl Inspector {
    pub(crate) fn new(servers: Arc<Servers>, keys: &Keys) -> Self {
        let keys = keys.all().map(|(key, kind)| (key.clone(), kind)).collect();
        Self {
            servers,
            keys,
            last: Mutex::default(),
        }
    }

    /// Returns what was found last.
    pub(crate) fn last(&self) -> Option<Inspection> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fails if this server is none that a queue can be on. Writes nothing.
    pub(crate) async fn inspect(&self, connection: &mut Connection) -> Result<(), QueueError> {
        let facts = self
            .ask(connection)
            .await
            .map_err(|source| self.servers.judge("tell what it is", source))?;
        let mut found = judge(&facts)?;
        if found.append_only != AppendOnly::No {
            found.append_only = AppendOnly::Yes(fsync(connection).await);
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref() != Some(&found) {
            tell(&found);
            *last = Some(found);
        }
        Ok(())
    }

    async fn ask(&self, connection: &mut Connection) -> RedisResult<Facts> {
        let mut inspect = scripts::INSPECT.on(self.keys.iter().map(|(key, _)| key));
        for (_, kind) in &self.keys {
            inspect.arg(kind);
        }
        let answer = connection.ask(&inspect.by_text()).await?;
        let (info, position, kind): (String, usize, String) = redis::from_redis_value(answer)?;
        let foreign = position
            .checked_sub(1)
            .and_then(|position| self.keys.get(position))
            .map(|(key, _)| (key.clone(), kind));
        Ok(Facts {
            info: read(&info),
            foreign,
        })
    }
}

/// Reads lines of `name:value`.
fn read(info: &str) -> HashMap<String, String> {
    info.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Tells whether a queue can be on a server of which these are the facts.
fn judge(facts: &Facts) -> Result<Inspection, QueueError> {
    let fact = |name: &str| facts.info.get(name).map_or("", String::as_str);
    let redis = format!("Redis {}", fact("redis_version"));
    let server = match fact("valkey_version") {
        "" => redis,
        version => format!("Valkey {version}"),
    };
    let major = fact("redis_version")
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major < FIRST_MAJOR) {
        return Err(QueueError::TooOld { found: server });
    }
    if let Some((key, kind)) = &facts.foreign {
        return Err(QueueError::Foreign {
            key: key.clone(),
            found: kind.clone(),
        });
    }
    Ok(Inspection {
        server,
        policy: fact("maxmemory_policy").to_owned(),
        append_only: match fact("aof_enabled") {
            "1" => AppendOnly::Yes(None),
            _ => AppendOnly::No,
        },
    })
}

/// Asks for `appendfsync`, which `INFO` does not tell. A server, or a right, may keep it to itself.
async fn fsync(connection: &mut Connection) -> Option<String> {
    let mut get = redis::cmd("CONFIG");
    get.arg("GET").arg("appendfsync");
    let answer = connection.ask(&get).await.ok()?;
    let settings: HashMap<String, String> = redis::from_redis_value(answer).ok()?;
    settings.into_values().next()
}

fn tell(found: &Inspection) {
    if found.evicts() {
        error!(
            "redis throws jobs out of the queue when its memory is full, until the ledger has them back: {found}; \
             hint: redis-cli CONFIG SET maxmemory-policy noeviction"
        );
    } else {
        info!("the queue is on {found}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(info: &str) -> Facts {
        Facts {
            info: read(info),
            foreign: None,
        }
    }

    #[test]
    fn a_server_is_known_by_its_name_and_version() {
        let redis = judge(&facts(
            "# Server\r\nredis_version:7.0.15\r\nrun_id:ab\r\n\r\n# Memory\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:0\r\n",
        ))
        .unwrap();
        let valkey = judge(&facts(
            "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n",
        ))
        .unwrap();

        assert_eq!(redis.server, "Redis 7.0.15");
        assert_eq!(redis.policy, "allkeys-lru");
        assert_eq!(redis.append_only, AppendOnly::No);
        assert_eq!(valkey.server, "Valkey 8.1.0");
        assert_eq!(valkey.append_only, AppendOnly::Yes(None));
    }

    #[test]
    fn a_server_that_is_too_old_is_named() {
        for version in ["2.8.24", "5.0.14", "6.2.99"] {
            let error = judge(&facts(&format!("redis_version:{version}\r\n"))).unwrap_err();

            assert!(
                error.to_string().contains(&format!("Redis {version}")),
                "{version}: {error}"
            );
        }
        for version in ["7.0.0", "7.2.4", "8.0.1", "10.0.0", "255.255.255"] {
            assert!(
                judge(&facts(&format!("redis_version:{version}\r\n"))).is_ok(),
                "{version}"
            );
        }
    }

    #[test]
    fn a_key_of_somebody_else_is_named_with_its_type() {
        let error = judge(&Facts {
            foreign: Some(("{webhooks}:active".to_owned(), "list".to_owned())),
            ..facts("redis_version:7.0.15\r\n")
        })
        .unwrap_err();

        assert!(error.to_string().contains("{webhooks}:active"), "{error}");
        assert!(error.to_string().contains("a list"), "{error}");
    }
}
