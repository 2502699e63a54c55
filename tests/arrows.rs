//! Holds the drawing in `docs/ARCHITECTURE.md`: which room may know which, and whose library is whose.
//!
//! Looks at what the manifests say, not at what the code does with it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Each room, and the rooms that it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "posthaste",
        &[
            "posthaste-jobs",
            "posthaste-store",
            "posthaste-queue",
            "posthaste-outbound",
            "posthaste-ingress",
            "posthaste-workers",
        ],
    ),
    (
        "posthaste-ingress",
        &["posthaste-store", "posthaste-queue", "posthaste-jobs"],
    ),
    (
        "posthaste-workers",
        &[
            "posthaste-store",
            "posthaste-queue",
            "posthaste-outbound",
            "posthaste-jobs",
        ],
    ),
    ("posthaste-store", &["posthaste-jobs"]),
    ("posthaste-queue", &["posthaste-jobs"]),
    ("posthaste-outbound", &[]),
    ("posthaste-jobs", &[]),
];

/// Each library that lives in certain rooms, and in no other.
const OWNERS: &[(&str, &[&str])] = &[
    ("sqlx", &["posthaste-store"]),
    ("redis", &["posthaste-queue"]),
    ("apalis-redis", &["posthaste-queue"]),
    ("apalis-core", &["posthaste-queue", "posthaste-workers"]),
    ("apalis", &["posthaste-queue", "posthaste-workers"]),
    ("axum", &["posthaste-ingress"]),
    // The binary plays the user's service (`demo`); what arrives for us is served by `ingress`.
    ("hyper", &["posthaste-ingress", "posthaste"]),
    ("hyper-util", &["posthaste-ingress", "posthaste"]),
    // The binary plays the provider (`send`, `demo`); what we owe leaves through `outbound`.
    ("reqwest", &["posthaste-outbound", "posthaste"]),
    ("failsafe", &["posthaste-outbound"]),
    ("clap", &["posthaste"]),
    ("anyhow", &["posthaste"]),
];

/// Members that look at the house from outside; they use what they need.
const OUTSIDE: &[&str] = &["posthaste-tests", "bench"];

#[test]
fn every_member_is_drawn() {
    let drawn: BTreeSet<&str> = ARROWS.iter().map(|(room, _)| *room).collect();
    let outside: BTreeSet<&str> = OUTSIDE.iter().copied().collect();
    let metadata = workspace();

    let members: BTreeSet<&str> = metadata
        .packages
        .iter()
        .map(|member| member.name.as_str())
        .collect();

    assert_eq!(members, &drawn | &outside);
}

#[test]
fn the_only_arrows_are_those_drawn() {
    let metadata = workspace();

    let refused: Vec<String> = dependencies(&metadata)
        .filter(|(member, library)| !may_know(member, library))
        .map(|(member, library)| format!("{member} -> {library}"))
        .collect();

    assert!(refused.is_empty(), "arrows that nobody drew: {refused:?}");
}

#[test]
fn an_arrow_against_the_flow_is_refused() {
    assert!(may_know("posthaste-ingress", "posthaste-store"));
    assert!(!may_know("posthaste-store", "posthaste-ingress"));
    assert!(!may_know("posthaste-queue", "posthaste-store"));
    assert!(!may_know("posthaste-outbound", "posthaste-jobs"));
}

#[test]
fn nothing_depends_on_the_binary() {
    let metadata = workspace();

    let dependents: Vec<&str> = metadata
        .packages
        .iter()
        .filter(|member| {
            member
                .dependencies
                .iter()
                .any(|dependency| dependency.name == "posthaste")
        })
        .map(|member| member.name.as_str())
        .collect();

    assert!(dependents.is_empty(), "{dependents:?}");
}

#[test]
fn a_library_lives_in_the_room_that_owns_it() {
    let metadata = workspace();

    let strays: Vec<String> = dependencies(&metadata)
        .filter(|(member, library)| !may_use(member, library))
        .map(|(member, library)| format!("{library} in {member}"))
        .collect();

    assert!(strays.is_empty(), "libraries outside their room: {strays:?}");
}

#[test]
fn a_library_outside_its_room_is_refused() {
    assert!(may_use("posthaste-store", "sqlx"));
    assert!(!may_use("posthaste-workers", "sqlx"));
    assert!(!may_use("posthaste-ingress", "reqwest"));
    assert!(!may_use("posthaste-jobs", "anyhow"));
}

#[test]
fn every_dependency_has_its_version_in_the_root_only() {
    let strays: Vec<String> = member_manifests()
        .iter()
        .flat_map(|(folder, manifest)| {
            dependency_tables(manifest)
                .into_iter()
                .filter(|(_, requirement)| !says_workspace(requirement))
                .map(move |(name, _)| format!("{name} in {}", folder.display()))
        })
        .collect();

    assert!(strays.is_empty(), "write `workspace = true`: {strays:?}");
}

#[test]
fn every_dependency_in_the_root_is_used() {
    let used: BTreeSet<String> = member_manifests()
        .iter()
        .flat_map(|(_, manifest)| dependency_tables(manifest))
        .map(|(name, _)| name)
        .collect();

    let unused: Vec<String> = root_dependencies()
        .into_iter()
        .filter(|name| !used.contains(name))
        .collect();

    assert!(unused.is_empty(), "nobody uses {unused:?}");
}

#[test]
fn every_dependency_in_the_root_stands_below_a_comment() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();

    let uncommented = uncommented(&manifest);

    assert!(uncommented.is_empty(), "say what it is for: {uncommented:?}");
}

#[test]
fn a_dependency_without_a_comment_is_found() {
    let manifest = "[workspace.dependencies]\n# Numbers.\na = \"1\"\nb = \"1\"\n\nc = \"1\"\n\n[workspace.lints.rust]\nd = \"warn\"\n";

    assert_eq!(uncommented(manifest), ["c"]);
}

#[test]
fn every_member_is_held_to_the_lints_of_the_workspace() {
    let lax: Vec<PathBuf> = member_manifests()
        .into_iter()
        .filter(|(_, manifest)| !manifest.get("lints").is_some_and(says_workspace))
        .map(|(folder, _)| folder)
        .collect();

    assert!(lax.is_empty(), "{lax:?}");
}

fn may_know(member: &str, library: &str) -> bool {
    let ours = ARROWS.iter().any(|(room, _)| *room == library);
    !ours
        || OUTSIDE.contains(&member)
        || ARROWS
            .iter()
            .any(|(room, known)| *room == member && known.contains(&library))
}

fn may_use(member: &str, library: &str) -> bool {
    OUTSIDE.contains(&member)
        || OWNERS
            .iter()
            .all(|(owned, rooms)| *owned != library || rooms.contains(&member))
}

/// Returns the dependencies of the sections `[workspace.dependencies]` whose block does not begin with a comment.
fn uncommented(manifest: &str) -> Vec<String> {
    let section = manifest
        .split("[workspace.dependencies]")
        .nth(1)
        .and_then(|rest| rest.split("\n[").next())
        .expect("the root has dependencies");
    section
        .split("\n\n")
        .map(str::trim)
        .filter(|block| !block.is_empty() && !block.starts_with('#'))
        .flat_map(str::lines)
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim().to_owned())
        .collect()
}

/// Each member with each library that it is built with. What only its tests use is its own affair.
fn dependencies(metadata: &Metadata) -> impl Iterator<Item = (&str, &str)> {
    metadata.packages.iter().flat_map(|member: &Package| {
        member
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind != DependencyKind::Development)
            .map(|dependency| (member.name.as_str(), dependency.name.as_str()))
    })
}

fn workspace() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo reads the workspace")
}

fn member_manifests() -> Vec<(PathBuf, toml::Table)> {
    workspace()
        .packages
        .iter()
        .map(|member| {
            let path = member.manifest_path.as_std_path();
            (path.to_owned(), read(path))
        })
        .collect()
}

fn root_dependencies() -> Vec<String> {
    read(&root().join("Cargo.toml"))["workspace"]["dependencies"]
        .as_table()
        .expect("it is a table")
        .keys()
        .cloned()
        .collect()
}

fn dependency_tables(manifest: &toml::Table) -> Vec<(String, toml::Value)> {
    ["dependencies", "dev-dependencies", "build-dependencies"]
        .iter()
        .filter_map(|section| manifest.get(*section)?.as_table())
        .flat_map(|table| table.clone())
        .collect()
}

fn says_workspace(requirement: &toml::Value) -> bool {
    requirement.get("workspace").and_then(toml::Value::as_bool) == Some(true)
}

fn read(path: &Path) -> toml::Table {
    fs::read_to_string(path)
        .expect("a manifest can be read")
        .parse()
        .expect("a manifest is TOML")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
