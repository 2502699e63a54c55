use std::fmt;

/// Where the ledger is. Section `[ledger]`.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `sqlite:PATH` or `postgres://user:password@host/db`.
    pub url: String,
    /// Most connections a process opens to PostgreSQL, at least 4: three write, the rest read. SQLite has
    /// one that writes and up to four that read, whatever stands here.
    pub max_connections: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: "sqlite:posthaste-data/ledger.db".to_owned(),
            max_connections: 8,
        }
    }
}

/// Shows the scheme and nothing else of the URL: a password may stand in it.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.url.split_once(':').map_or("", |(scheme, _)| scheme);
        f.debug_struct("Config")
            .field("url", &format_args!("{scheme}:…"))
            .field("max_connections", &self.max_connections)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown_for_debugging() {
        let config = Config {
            url: "postgres://me:hunter2@host/db".to_owned(),
            ..Config::default()
        };

        let shown = format!("{config:?}");

        assert!(shown.contains("postgres:…"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
