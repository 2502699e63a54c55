use std::path::PathBuf;

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo,
    RedisResult, TlsCertificates,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::OpenError;
use crate::redis_url::{Host, Login};

/// How a server is approached, wherever it is: as whom, by which transport.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) login: Login,
    pub(crate) database: i64,
    /// None: not by TLS.
    pub(crate) tls: Option<TlsCertificates>,
}

impl Access {
    /// Makes a client of the server at `host`. Connects nowhere.
    pub(crate) fn client(&self, host: &Host) -> RedisResult<Client> {
        let info = self.info(host)?;
        match &self.tls {
            Some(certificates) => Client::build_with_tls(info, certificates.clone()),
            None => Client::open(info),
        }
    }

    pub(crate) fn info(&self, host: &Host) -> RedisResult<ConnectionInfo> {
        let (host, port) = (host.name.clone(), host.port);
        let address = match &self.tls {
            None => ConnectionAddr::Tcp(host, port),
            Some(_) => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            },
        };
        let mut settings = RedisConnectionInfo::default().set_db(self.database);
        if let Some(user) = &self.login.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.login.password {
            settings = settings.set_password(password);
        }
        Ok(address.into_connection_info()?.set_redis_settings(settings))
    }

    /// For connections without limits of their own: whoever asks keeps time, over connecting and asking together.
    pub(crate) fn without_limits() -> AsyncConnectionConfig {
        AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
    }
}

/// Reads whom to trust: the authorities in the file `ca`, or else the system's.
pub(crate) fn trust(ca: Option<PathBuf>) -> Result<TlsCertificates, OpenError> {
    // The client takes the process's provider, and panics where there is none. Somebody else may have chosen one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Some(path) = ca else {
        return Ok(certificates(None));
    };
    let pem = match std::fs::read(&path) {
        Ok(pem) => pem,
        Err(source) => return Err(OpenError::CaUnreadable { path, source }),
    };
    if !matches!(CertificateDer::pem_slice_iter(&pem).next(), Some(Ok(_))) {
        return Err(OpenError::CaEmpty { path });
    }
    Ok(certificates(Some(pem)))
}

fn certificates(root_cert: Option<Vec<u8>>) -> TlsCertificates {
    TlsCertificates {
        client_tls: None,
        root_cert,
    }
}
