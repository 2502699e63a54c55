//! Other people's data: real request bodies and hostile ones, read from where they lie.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A request body and what is sent with it.
#[derive(Clone, Debug)]
pub struct Case {
    /// For messages.
    pub name: String,
    /// Where its body lies, to be named on a command line.
    pub path: PathBuf,
    /// The body.
    pub body: Vec<u8>,
    /// As the provider sends it.
    pub content_type: String,
    /// `X-GitHub-Event`, where there is one.
    pub event_type: Option<String>,
}

/// Reads the bodies of one provider in `POSTHASTE_CASES` (else `../shared/cases` beside the checkout).
///
/// There are none when the folder is absent, which is said on stderr: a caller has cases of its own besides.
///
/// # Panics
///
/// When the folder is there and its index is not what its README says.
#[must_use]
#[expect(clippy::print_stderr, reason = "what was skipped is said where failures are")]
pub fn payloads(provider: &str) -> Vec<Case> {
    let Some(folder) = folder() else {
        eprintln!(
            "SKIPPED: real payloads of {provider}: POSTHASTE_CASES is not set and ../shared/cases is absent"
        );
        return Vec::new();
    };
    let index = std::fs::read(folder.join("payloads/index.json")).expect("the cases have an index");
    let index: Value = serde_json::from_slice(&index).expect("the index is JSON");
    let cases: Vec<Case> = index
        .as_array()
        .expect("the index is a list")
        .iter()
        .filter(|entry| entry["provider"] == provider)
        .map(|entry| case(&folder, entry))
        .collect();
    assert!(!cases.is_empty(), "the index has payloads of {provider}");
    cases
}

fn folder() -> Option<PathBuf> {
    let beside = || {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
        Some(workspace.parent()?.join("shared/cases"))
    };
    match std::env::var_os("POSTHASTE_CASES") {
        Some(folder) => Some(PathBuf::from(folder)),
        None => beside().filter(|folder| folder.is_dir()),
    }
}

fn case(folder: &Path, entry: &Value) -> Case {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let name = text(&entry["file"]).expect("an entry names its file");
    let path = folder.join(&name);
    Case {
        body: std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}")),
        path,
        content_type: text(&entry["content_type"]).expect("an entry has a content type"),
        event_type: text(&entry["headers"]["X-GitHub-Event"]),
        name,
    }
}
