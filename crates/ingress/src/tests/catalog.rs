use posthaste_jobs::{Priority, Span, Timestamp};

use super::harness::source;
use crate::{Catalog, InvalidCatalog, InvalidSecret, RouteConfig, Scheme, SourceConfig};

fn route(source: &str, event_types: &[&str], endpoint: &str) -> RouteConfig {
    RouteConfig {
        source: source.to_owned(),
        event_types: event_types.iter().map(|&text| text.to_owned()).collect(),
        endpoint: endpoint.to_owned(),
        priority: Priority::Normal,
    }
}

fn refusal(sources: Vec<SourceConfig>, routes: Vec<RouteConfig>) -> InvalidCatalog {
    Catalog::new(sources, routes, &["ci".to_owned()]).unwrap_err()
}

#[test]
fn an_event_goes_to_each_endpoint_once() {
    let endpoints = ["ci", "audit"].map(str::to_owned);
    let routes = vec![
        route("github", &["push"], "ci"),
        route("github", &["*"], "audit"),
        route("github", &["pu*", "issues"], "ci"),
    ];
    let catalog = Catalog::new(vec![source("github", Scheme::Github, &["s"])], routes, &endpoints).unwrap();

    let goes_to = |source: &str, event_type| -> Vec<String> {
        let deliveries = catalog.deliveries(source, event_type, Timestamp::from_millis(1));
        deliveries.into_iter().filter_map(|job| job.endpoint).collect()
    };
    assert_eq!(goes_to("github", Some("push")), ["ci", "audit"]);
    assert_eq!(goes_to("github", Some("star")), ["audit"]);
    assert_eq!(goes_to("github", None), ["audit"]);
    assert_eq!(goes_to("gitlab", Some("push")), [""; 0]);
}

#[test]
fn what_is_named_twice_is_refused() {
    let github = || source("github", Scheme::Github, &["s"]);

    let refused = refusal(vec![github(), github()], vec![]);
    assert_eq!(refused.to_string(), "source \"github\" is there twice");

    let twice = ["ci", "ci"].map(str::to_owned);
    let refused = Catalog::new(vec![], vec![], &twice).unwrap_err();
    assert_eq!(refused.to_string(), "endpoint \"ci\" is there twice");
}

#[test]
fn a_route_from_or_to_nowhere_is_refused_by_name() {
    let refused = refusal(vec![], vec![route("github", &[], "ci")]);
    assert!(
        refused
            .to_string()
            .contains("source \"github\", which is not there"),
        "{refused}"
    );

    let refused = refusal(
        vec![source("github", Scheme::Github, &["s"])],
        vec![route("github", &[], "cd")],
    );
    assert!(
        refused
            .to_string()
            .contains("endpoint \"cd\", which is not there"),
        "{refused}"
    );

    let refused = refusal(
        vec![source("github", Scheme::Github, &["s"])],
        vec![route("github", &[""], "ci")],
    );
    assert!(matches!(refused, InvalidCatalog::EmptyEventType { .. }));
}

#[test]
fn secrets_must_fit_the_scheme() {
    let name = || "a".to_owned();

    assert_eq!(
        refusal(vec![source("a", Scheme::Github, &[])], vec![]),
        InvalidCatalog::NoSecret { name: name() }
    );
    assert_eq!(
        refusal(vec![source("a", Scheme::None, &["s"])], vec![]),
        InvalidCatalog::UnusedSecret { name: name() }
    );
    assert_eq!(
        refusal(vec![source("a", Scheme::Stripe, &["s", ""])], vec![]),
        InvalidCatalog::Secret {
            name: name(),
            position: 2,
            source: InvalidSecret::Empty
        }
    );
}

#[test]
fn a_tolerance_that_would_do_nothing_is_refused() {
    let with = |scheme| SourceConfig {
        tolerance: Some(Span::from_secs(60)),
        ..source("a", scheme, &["s"])
    };

    assert!(Catalog::new(vec![with(Scheme::Stripe)], vec![], &[]).is_ok());
    assert!(matches!(
        refusal(vec![with(Scheme::Github)], vec![]),
        InvalidCatalog::UnusedTolerance { .. }
    ));
}

#[test]
fn a_name_of_64_letters_fits_in_a_path_and_one_of_65_does_not() {
    let named = |name: &str| Catalog::new(vec![source(name, Scheme::None, &[])], vec![], &[]);

    assert!(named(&"a".repeat(64)).is_ok());
    for name in ["", "a/b", "a b", "..", "é", &"a".repeat(65)] {
        assert_eq!(
            named(name).unwrap_err(),
            InvalidCatalog::SourceName {
                name: name.to_owned()
            }
        );
    }
}

#[test]
fn debug_shows_no_secret() {
    let config = source("a", Scheme::Stripe, &["whsec_hidden"]);
    let shown = format!(
        "{config:?} {:?}",
        Catalog::new(vec![config.clone()], vec![], &[]).unwrap()
    );

    assert!(!shown.contains("hidden"), "{shown}");
}
