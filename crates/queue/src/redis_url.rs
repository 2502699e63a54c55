use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::OpenError;

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// What a URL of Redis says, in parts. Nothing has been looked at yet: no server, no file.
///
/// The [`url`](https://docs.rs/url) crate does not serve: it knows one host, and ours may name several.
pub(crate) struct RedisUrl {
    pub(crate) kind: Kind,
    /// At least one; for sentinels, theirs.
    pub(crate) hosts: Vec<Host>,
    /// Of the servers.
    pub(crate) login: Login,
    pub(crate) database: i64,
    pub(crate) tls: bool,
    /// Whom to trust instead of the system's authorities.
    pub(crate) ca: Option<PathBuf>,
}

/// How the servers of a URL belong together.
pub(crate) enum Kind {
    Single,
    Sentinel { master: String, login: Login },
    Cluster,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// An IPv6 address stands here without its brackets.
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// As whom to connect. Without a password nothing is said.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

impl RedisUrl {
    /// Reads what stands after `scheme://`; `None` if the scheme is no Redis's.
    pub(crate) fn parse(scheme: &str, rest: &str) -> Option<Result<Self, OpenError>> {
        let (tls, form) = match scheme {
            "redis" => (false, Form::Single),
            "rediss" => (true, Form::Single),
            "redis-sentinel" => (false, Form::Sentinel),
            "rediss-sentinel" => (true, Form::Sentinel),
            "redis-cluster" => (false, Form::Cluster),
            "rediss-cluster" => (true, Form::Cluster),
            _ => return None,
        };
        Some(form.read(tls, rest))
    }
}

/// The three ways in which such a URL is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Single,
    Sentinel,
    Cluster,
}

impl Form {
    fn read(self, tls: bool, rest: &str) -> Result<RedisUrl, OpenError> {
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        // The rest of a password that was written as it is, most likely; or the fragment of a URL, which means nothing here.
        if rest.contains(['@', '#']) {
            return Err(OpenError::Unescaped);
        }
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));

        let mut options = self.options(query)?;
        let ca = options.remove("ca").map(PathBuf::from);
        if ca.is_some() && !tls {
            return Err(OpenError::CaWithoutTls);
        }
        let sentinels = Login {
            user: options.remove("sentinel_username"),
            password: options.remove("sentinel_password"),
        };
        if sentinels.user.is_some() && sentinels.password.is_none() {
            return Err(OpenError::UserWithoutPassword);
        }
        let (kind, database) = self.kind(path, sentinels)?;
        Ok(RedisUrl {
            kind,
            hosts: self.hosts(hosts)?,
            login: Login::read(login)?,
            database,
            tls,
            ca,
        })
    }

    fn kind(self, path: &str, login: Login) -> Result<(Kind, i64), OpenError> {
        let path = path.strip_prefix('/').unwrap_or(path);
        match self {
            Self::Single => Ok((Kind::Single, database(path)?)),
            Self::Cluster if database(path)? != 0 => Err(OpenError::ClusterDatabase),
            Self::Cluster => Ok((Kind::Cluster, 0)),
            Self::Sentinel => {
                let (master, number) = path.split_once('/').unwrap_or((path, ""));
                if master.is_empty() {
                    return Err(OpenError::NoMaster);
                }
                let master = unescape(master)?;
                Ok((Kind::Sentinel { master, login }, database(number)?))
            }
        }
    }

    fn hosts(self, list: &str) -> Result<Vec<Host>, OpenError> {
        let default = if self == Self::Sentinel {
            SENTINEL_PORT
        } else {
            REDIS_PORT
        };
        let hosts = list
            .split(',')
            .map(|host| Host::read(host, default))
            .collect::<Result<Vec<_>, _>>()?;
        if self == Self::Single && hosts.len() > 1 {
            return Err(OpenError::SeveralHosts);
        }
        Ok(hosts)
    }

    fn known_options(self) -> &'static [&'static str] {
        match self {
            Self::Single | Self::Cluster => &["ca"],
            Self::Sentinel => &["ca", "sentinel_username", "sentinel_password"],
        }
    }

    fn options(self, query: &str) -> Result<BTreeMap<&str, String>, OpenError> {
        let known = self.known_options();
        query
            .split('&')
            .filter(|option| !option.is_empty())
            .map(|option| {
                let (name, value) = option.split_once('=').unwrap_or((option, ""));
                if !known.contains(&name) {
                    return Err(OpenError::UnknownOption {
                        known: known.join(", "),
                    });
                }
                Ok((name, unescape(value)?))
            })
            .collect()
    }
}

impl Host {
    fn read(text: &str, default: u16) -> Result<Self, OpenError> {
        let (name, port) = match text.strip_prefix('[') {
            Some(text) => text.split_once(']').ok_or(OpenError::BadHost)?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        if name.is_empty() {
            return Err(OpenError::NoHost);
        }
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().ok().filter(|port| *port > 0),
            None => Some(default).filter(|_| port.is_empty()),
        };
        Ok(Self {
            name: name.to_owned(),
            port: port.ok_or(OpenError::BadHost)?,
        })
    }
}

impl Login {
    fn read(text: &str) -> Result<Self, OpenError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let (user, password) = text.split_once(':').ok_or(OpenError::UserWithoutPassword)?;
        Ok(Self {
            user: Some(unescape(user)?).filter(|user| !user.is_empty()),
            password: Some(unescape(password)?),
        })
    }
}

fn database(text: &str) -> Result<i64, OpenError> {
    let number = text.trim_end_matches('/');
    if number.is_empty() {
        return Ok(0);
    }
    number
        .parse::<u32>()
        .map(i64::from)
        .map_err(|_| OpenError::BadDatabase)
}

/// Replaces each %XX.
fn unescape(text: &str) -> Result<String, OpenError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (high, low) = (
            digit().ok_or(OpenError::Unescaped)?,
            digit().ok_or(OpenError::Unescaped)?,
        );
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| OpenError::Unescaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> RedisUrl {
        match parse(url) {
            Ok(read) => read,
            Err(error) => panic!("{url}: {error}"),
        }
    }

    fn refusal(url: &str) -> OpenError {
        match parse(url) {
            Ok(_) => panic!("{url} was taken"),
            Err(error) => error,
        }
    }

    fn parse(url: &str) -> Result<RedisUrl, OpenError> {
        let (scheme, rest) = url.split_once("://").unwrap();
        RedisUrl::parse(scheme, rest).unwrap()
    }

    fn host(name: &str, port: u16) -> Host {
        Host {
            name: name.to_owned(),
            port,
        }
    }

    fn login(user: Option<&str>, password: &str) -> Login {
        Login {
            user: user.map(str::to_owned),
            password: Some(password.to_owned()),
        }
    }

    #[test]
    fn a_single_server_has_one_host_and_a_database() {
        let url = read("rediss://user:p%40ss%2F@redis.example:7000/3?ca=/etc/ca%20of%20ours.pem");

        assert!(matches!(url.kind, Kind::Single));
        assert_eq!(url.hosts, [host("redis.example", 7000)]);
        assert!(url.login == login(Some("user"), "p@ss/"));
        assert_eq!((url.database, url.tls), (3, true));
        assert_eq!(url.ca.unwrap(), PathBuf::from("/etc/ca of ours.pem"));
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let url = read("redis://h");

        assert_eq!(url.hosts, [host("h", 6379)]);
        assert!(url.login == Login::default());
        assert_eq!((url.database, url.tls, url.ca), (0, false, None));
        assert_eq!(read("redis-sentinel://h/m").hosts, [host("h", 26379)]);
        assert_eq!(read("redis-cluster://h/").hosts, [host("h", 6379)]);
        assert!(read("redis://:pass@h").login == login(None, "pass"));
    }

    #[test]
    fn sentinels_have_a_master_and_a_login_of_their_own() {
        let url = read("rediss-sentinel://:pass@a,b:2/m%20y/4?sentinel_username=s&sentinel_password=%26");

        assert_eq!(url.hosts, [host("a", 26379), host("b", 2)]);
        assert!(url.login == login(None, "pass"));
        assert_eq!((url.database, url.tls), (4, true));
        let Kind::Sentinel {
            master,
            login: theirs,
        } = url.kind
        else {
            panic!("no sentinel")
        };
        assert_eq!(master, "m y");
        assert!(theirs == login(Some("s"), "&"));
    }

    #[test]
    fn an_ipv6_address_stands_in_brackets() {
        assert_eq!(read("redis://[::1]").hosts, [host("::1", 6379)]);
        assert_eq!(
            read("redis-cluster://u:p@[::1]:1,[fe80::2]:65535,c").hosts,
            [host("::1", 1), host("fe80::2", 65535), host("c", 6379)]
        );
        assert!(matches!(refusal("redis://[::1"), OpenError::BadHost));
        assert!(matches!(refusal("redis://[::1]6379"), OpenError::BadHost));
        assert!(matches!(refusal("redis://::1"), OpenError::NoHost));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert!(matches!(refusal("redis://"), OpenError::NoHost));
        assert!(matches!(refusal("redis://:6379"), OpenError::NoHost));
        assert!(matches!(refusal("redis-cluster://a,"), OpenError::NoHost));
        assert!(matches!(refusal("redis://a,b"), OpenError::SeveralHosts));
        for port in ["notaport", "0", "65536", ""] {
            assert!(
                matches!(refusal(&format!("redis://a:{port}")), OpenError::BadHost),
                "{port}"
            );
        }
        assert!(matches!(refusal("redis://a/notanumber"), OpenError::BadDatabase));
        assert!(matches!(refusal("redis://a/-1"), OpenError::BadDatabase));
        assert!(matches!(
            refusal("redis-cluster://a/1"),
            OpenError::ClusterDatabase
        ));
        assert!(matches!(refusal("redis-sentinel://a"), OpenError::NoMaster));
        assert!(matches!(refusal("redis-sentinel://a//1"), OpenError::NoMaster));
        assert!(matches!(
            refusal("redis://user@a"),
            OpenError::UserWithoutPassword
        ));
        assert!(matches!(
            refusal("redis-sentinel://a/m?sentinel_username=s"),
            OpenError::UserWithoutPassword
        ));
        assert!(matches!(refusal("redis://a?ca=x"), OpenError::CaWithoutTls));
        for text in ["%", "%4", "%zz", "%ff"] {
            assert!(
                matches!(refusal(&format!("redis://:{text}@a")), OpenError::Unescaped),
                "{text}"
            );
        }
        assert!(matches!(refusal("rediss://a#insecure"), OpenError::Unescaped));
    }

    #[test]
    fn an_option_that_nobody_knows_is_refused_with_the_known_ones() {
        let known = |url| match refusal(url) {
            OpenError::UnknownOption { known } => known,
            other => panic!("{other}"),
        };

        assert_eq!(known("rediss://a?cert=x"), "ca");
        assert_eq!(known("redis-cluster://a?sentinel_password=x"), "ca");
        assert_eq!(
            known("redis-sentinel://a/m?db=1"),
            "ca, sentinel_username, sentinel_password"
        );
    }
}
