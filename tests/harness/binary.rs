//! The binary under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// Finds the binary: `POSTHASTE_BIN`, or the one built beside the test, built again if a source is younger.
///
/// # Panics
///
/// When it cannot be built.
pub fn posthaste() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("POSTHASTE_BIN") {
        Some(path) => PathBuf::from(path),
        None => beside_the_test(),
    })
}

fn beside_the_test() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let profile = test
        .parent()
        .and_then(Path::parent)
        .expect("a test lies in target/PROFILE/deps");
    let binary = profile.join("posthaste");
    if !is_current(&binary) {
        build(profile);
    }
    binary
}

fn is_current(binary: &Path) -> bool {
    let root = workspace();
    let sources = ["crates", "migrations", "config", "Cargo.lock"];
    modified(binary).is_some_and(|built| sources.iter().all(|path| is_older(&root.join(path), built)))
}

fn is_older(path: &Path, than: SystemTime) -> bool {
    if path.is_dir() {
        // Tests and benchmarks of a crate are not in the binary.
        return path.ends_with("tests")
            || std::fs::read_dir(path)
                .expect("a folder of the workspace can be read")
                .flatten()
                .all(|entry| is_older(&entry.path(), than));
    }
    modified(path).is_none_or(|time| time <= than)
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|data| data.modified()).ok()
}

fn build(profile: &Path) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(workspace())
        .args(["build", "--quiet", "-p", "posthaste"])
        .arg("--target-dir")
        .arg(profile.parent().expect("a profile lies in target"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo can be run");
    assert!(status.success(), "posthaste could not be built");
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the workspace")
}
