use std::path::PathBuf;

/// A URL that cannot be meant. Never shows the URL, nor a part of it that may be a password in the wrong place.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It does not begin with a scheme.
    #[error("the queue's url has no scheme; hint: {SCHEMES}")]
    NoScheme,
    /// It begins with a scheme that no engine serves.
    #[error("no queue engine serves {scheme}://; hint: {SCHEMES}")]
    UnknownScheme {
        /// What it begins with.
        scheme: String,
    },
    /// Something stands after `local:`.
    #[error("local: takes nothing after it; hint: write url = \"local:\"")]
    LocalWithMore,
    /// No host stands where one should.
    #[error(
        "the queue's url names no host; hint: redis://HOST:PORT, an IPv6 address in brackets: redis://[::1]:6379"
    )]
    NoHost,
    /// A host or its port is not written as one is.
    #[error(
        "a host of the queue's url is not written as HOST:PORT, with a port from 1 to 65535; hint: redis://USER:PASSWORD@HOST:PORT, with special characters of the password as %XX"
    )]
    BadHost,
    /// A single server is in one place.
    #[error(
        "redis:// takes one host; hint: redis-sentinel://HOST1:26379,HOST2:26379/MASTER or redis-cluster://HOST1:6379,HOST2:6379"
    )]
    SeveralHosts,
    /// The database is no number.
    #[error("the database of the queue's url is no number; hint: redis://HOST:PORT/0")]
    BadDatabase,
    /// A cluster was asked for another database than 0.
    #[error("a cluster has one database, 0; hint: redis-cluster://HOST:PORT")]
    ClusterDatabase,
    /// Sentinels watch several masters, and none is named.
    #[error(
        "the queue's url does not say which master; hint: redis-sentinel://HOST1:26379,HOST2:26379/MASTER"
    )]
    NoMaster,
    /// What should be `USER:PASSWORD` has no colon, or a user of the sentinels has no password.
    #[error(
        "the queue's url has a user without a password; hint: redis://USER:PASSWORD@HOST:PORT, or redis://:PASSWORD@HOST:PORT without a user"
    )]
    UserWithoutPassword,
    /// A special character is written as it is, or a %XX is none.
    #[error(
        "the queue's url has a special character that is not written as %XX; hint: in user, password and options write @ as %40, / as %2F, # as %23, % as %25"
    )]
    Unescaped,
    /// An option that does not exist for this scheme.
    #[error("the queue's url has an option that is not known; hint: the known ones are {known}")]
    UnknownOption {
        /// Those that do.
        known: String,
    },
    /// Authorities are named for a connection that has no use for them.
    #[error(
        "ca is for TLS, and the queue's url has none; hint: rediss://, rediss-sentinel:// or rediss-cluster://"
    )]
    CaWithoutTls,
    /// The file of authorities cannot be read.
    #[error("cannot read the authorities in {}; hint: ?ca=PATH names a PEM file", .path.display())]
    CaUnreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file of authorities has none.
    #[error(
        "no certificate in {}; hint: ?ca=PATH names a PEM file with -----BEGIN CERTIFICATE-----", .path.display()
    )]
    CaEmpty {
        /// Which file.
        path: PathBuf,
    },
    /// The client of Redis does not take it.
    #[error(
        "the queue's url is none that the client of redis takes; hint: redis://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    Malformed(#[source] redis::RedisError),
}

const SCHEMES: &str = "use local:, redis://HOST:PORT, redis-sentinel://HOST:PORT,…/MASTER or redis-cluster://HOST:PORT,…, with rediss for TLS";
