use crate::OpenError;
use crate::redis_url::RedisUrl;
use crate::remote::Servers;

/// Where the queues are. Section `[queue]`.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `local:`, or Redis:
    ///
    /// - `redis://USER:PASSWORD@HOST:PORT/DATABASE`, one server;
    /// - `redis-sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER/DATABASE`, whichever server the sentinels call the master;
    /// - `redis-cluster://USER:PASSWORD@HOST:PORT,HOST:PORT`, a cluster that some of its nodes lead to;
    ///
    /// each with `rediss` for TLS.
    pub url: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: "local:".to_owned(),
        }
    }
}

/// Which engine a URL means.
pub(crate) enum Address {
    Local,
    Redis(Servers),
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
        let Some((scheme, rest)) = self.url.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
            return Err(OpenError::NoScheme);
        };
        match RedisUrl::parse(scheme, rest) {
            Some(url) => Servers::of(url?).map(Address::Redis),
            None => Err(OpenError::UnknownScheme {
                scheme: scheme.to_owned(),
            }),
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
        for url in [
            "redis://127.0.0.1:6379/3",
            "rediss://user:pass@example.com",
            "redis-sentinel://a,b/master",
            "rediss-sentinel://a/master/2",
            "redis-cluster://a,b:7000",
            "rediss-cluster://:pass@[::1]:7000",
        ] {
            assert!(matches!(address(url), Ok(Address::Redis(_))), "{url}");
        }
    }

    #[test]
    fn what_no_engine_serves_is_refused_with_a_hint() {
        assert!(matches!(refusal("local:queue"), OpenError::LocalWithMore));
        assert!(matches!(refusal("amqp://host"), OpenError::UnknownScheme { scheme } if scheme == "amqp"));
        assert!(matches!(refusal("127.0.0.1:6379"), OpenError::NoScheme));
        assert!(matches!(refusal(""), OpenError::NoScheme));
        for url in [
            "amqp://host",
            "local:queue",
            "",
            "redis://",
            "redis://a,b",
            "redis://a:b",
            "redis://a/b",
            "redis-cluster://a/1",
            "redis-sentinel://a",
            "redis://u@a",
            "redis://:%@a",
            "redis://a?b=c",
            "redis://a?ca=b",
            "rediss://a?ca=/nowhere",
            "rediss://a?ca=/dev/null",
        ] {
            assert!(refusal(url).to_string().contains("hint: "), "{url}");
        }
    }

    #[test]
    fn authorities_that_cannot_be_had_are_refused_by_the_name_of_their_file() {
        assert!(matches!(
            refusal("rediss://a?ca=/nowhere/ca.pem"),
            OpenError::CaUnreadable { .. }
        ));
        let empty = refusal("rediss-cluster://a?ca=/dev/null");
        assert!(matches!(empty, OpenError::CaEmpty { .. }));
        assert!(empty.to_string().contains("/dev/null"));
    }

    #[test]
    fn a_refusal_never_shows_the_password() {
        for url in [
            "redis://user:S3CRET@host:notaport",
            "redis://user:S3CRET@host/notanumber",
            "amqp://user:S3CRET@host",
            "user:S3CRET@host:6379",
            "S3CRET@host://6379",
            "redis://S3CRET@host",
            "redis://user:S3CRET/S3CRET@host",
            "redis://user:12/S3CRET@host",
            "redis://user:12?S3CRET@host",
            "redis://user:12?S3CRET=S3CRET@host",
            "redis://user:12#S3CRET@host",
            "redis://user:S3CRET%@host",
            "redis-sentinel://user:S3CRET@a,b",
            "redis-sentinel://a/m?sentinel_pasword=S3CRET",
            "redis-sentinel://a/m?sentinel_password=S3CRET%",
            "redis-cluster://user:S3CRET@a,b/7",
            "rediss://user:S3CRET@a?ca=/nowhere",
            "rediss-cluster://user:S3CRET@a?ca=/dev/null",
        ] {
            assert!(!chain(&refusal(url)).contains("S3CRET"), "{url}");
        }
    }
}
