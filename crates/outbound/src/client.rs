use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, redirect, retry};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tracing::info;

/// How long a connection may take to be made; an endpoint's own time-out may be shorter.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an unused connection is kept.
///
/// Node and Apache close theirs after 5 s. Whoever sends just then is reset, and has spent an attempt.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Makes the one pooled client.
///
/// It follows no redirect, decompresses nothing, retries nothing, and speaks HTTP/1.1. Proxies named
/// in the environment are left alone: one that was meant for a package manager would see every
/// payload, and loopback endpoints would be asked of it.
pub(crate) fn client() -> Client {
    Client::builder()
        .tls_backend_preconfigured(tls())
        .user_agent(concat!("posthaste/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(retry::never())
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .tcp_nodelay(true)
        .http1_only()
        .build()
        .expect("the TLS backend, all that can fail to be set up, is handed over ready")
}

/// Trusts what the system trusts, or Mozilla's list where the system has none.
///
/// The provider is named here, so that no process-wide default is needed or disturbed.
fn tls() -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let system = builder(&provider).with_platform_verifier();

    system
        .unwrap_or_else(|_| {
            info!("the system has no list of certificate authorities: using Mozilla's");
            let roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            builder(&provider).with_root_certificates(roots)
        })
        .with_no_client_auth()
}

fn builder(provider: &Arc<CryptoProvider>) -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .expect("ring has suites for TLS 1.2 and 1.3")
}
