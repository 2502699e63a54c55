/// Where the queues are. Section `[queue]`.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `local:` or `redis://…`, `rediss://…`.
    pub url: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: "local:".to_owned(),
        }
    }
}

/// A URL that cannot be meant. Never shows the URL: it may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It does not begin with a scheme.
    #[error("the queue's url has no scheme; hint: use local:, redis://HOST:PORT or rediss://HOST:PORT")]
    NoScheme,
    /// It begins with a scheme that no engine serves.
    #[error("no queue engine serves {scheme}://; hint: use local:, redis://HOST:PORT or rediss://HOST:PORT")]
    UnknownScheme {
        /// What it begins with.
        scheme: String,
    },
    /// Something stands after `local:`.
    #[error("local: takes nothing after it; hint: write url = \"local:\"")]
    LocalWithMore,
    /// It is no URL of a Redis.
    #[error(
        "the queue's url does not parse; hint: redis://USER:PASSWORD@HOST:PORT/DATABASE, with special characters of the password written as %XX"
    )]
    Malformed(#[source] redis::RedisError),
}

/// Which engine a URL means.
pub(crate) enum Address {
    Local,
    Redis(Box<redis::Client>),
}

impl Config {
    pub(crate) fn address(&self) -> Result<Address, OpenError> {
        if let Some(rest) = self.url.strip_prefix("local:") {
            return if rest.is_empty() {
                Ok(Address::Local)
            } else {
                Err(OpenError::LocalWithMore)
            };
        }
        match self.url.split_once("://").map(|(scheme, _)| scheme) {
            Some("redis" | "rediss") => redis::Client::open(self.url.as_str())
                .map(|client| Address::Redis(Box::new(client)))
                .map_err(OpenError::Malformed),
            Some(scheme) if is_scheme(scheme) => Err(OpenError::UnknownScheme {
                scheme: scheme.to_owned(),
            }),
            _ => Err(OpenError::NoScheme),
        }
    }
}

/// What stands before `://` may be a password in the wrong place, and is shown only if it cannot be one.
fn is_scheme(text: &str) -> bool {
    text.len() <= 20
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || b"+-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> OpenError {
        match (Config { url: url.to_owned() }).address() {
            Err(error) => error,
            Ok(_) => panic!("{url} was taken"),
        }
    }

    fn chain(error: &dyn std::error::Error) -> String {
        let source = error.source().map(chain).unwrap_or_default();
        format!("{error} {error:?} {source}")
    }

    #[test]
    fn each_engine_has_its_scheme() {
        let address = |url: &str| Config { url: url.to_owned() }.address();

        assert!(matches!(address("local:"), Ok(Address::Local)));
        assert!(matches!(
            address("redis://127.0.0.1:6379/3"),
            Ok(Address::Redis(_))
        ));
        assert!(matches!(
            address("rediss://user:pass@example.com"),
            Ok(Address::Redis(_))
        ));
    }

    #[test]
    fn what_no_engine_serves_is_refused_with_a_hint() {
        assert!(matches!(refusal("local:queue"), OpenError::LocalWithMore));
        assert!(matches!(refusal("amqp://host"), OpenError::UnknownScheme { scheme } if scheme == "amqp"));
        assert!(matches!(
            refusal("redis-cluster://host"),
            OpenError::UnknownScheme { .. }
        ));
        assert!(matches!(refusal("127.0.0.1:6379"), OpenError::NoScheme));
        assert!(matches!(refusal(""), OpenError::NoScheme));
        assert!(matches!(
            refusal("redis://host:notaport"),
            OpenError::Malformed(_)
        ));
        assert!(matches!(
            refusal("redis://host/notanumber"),
            OpenError::Malformed(_)
        ));
        assert!(refusal("amqp://host").to_string().contains("hint: "));
    }

    #[test]
    fn a_refusal_never_shows_the_password() {
        for url in [
            "redis://user:S3CRET@host:notaport",
            "redis://user:S3CRET@host/notanumber",
            "amqp://user:S3CRET@host",
            "user:S3CRET@host:6379",
            "S3CRET@host://6379",
        ] {
            assert!(!chain(&refusal(url)).contains("S3CRET"), "{url}");
        }
    }
}
