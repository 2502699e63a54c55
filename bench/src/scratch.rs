//! A folder and ports for servers that live as long as one figure.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Ports below those that Linux gives to outgoing connections (32768 and up): a server that is
/// down for a moment must find its port free when it comes back.
const PORTS: std::ops::Range<u16> = 10_000..32_768;

/// A folder that goes when it is dropped, unless it is to be kept.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    /// Makes a folder in `dir`.
    pub(crate) fn new(dir: &Path, keep: bool) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("posthaste-bench-")
            // PostgreSQL runs as another user and has its own folder inside.
            .permissions(fs::Permissions::from_mode(0o711))
            .disable_cleanup(keep)
            .tempdir_in(dir)
            .with_context(|| format!("cannot make a folder in {}", dir.display()))?;
        Ok(Self { folder })
    }

    /// Returns the path of `name` in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Returns an address that nobody listens on.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    let mut last = None;
    for _ in 0..100 {
        match TcpListener::bind(("127.0.0.1", rand::random_range(PORTS))) {
            Ok(listener) => return Ok(listener.local_addr()?),
            Err(error) => last = Some(error),
        }
    }
    last.map_or_else(
        || anyhow::bail!("no port was tried"),
        |error| Err(error).context("found no free port"),
    )
}
