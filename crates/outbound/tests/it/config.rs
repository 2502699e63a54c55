use std::time::Duration;

use posthaste_outbound::{BreakerConfig, EndpointConfig, Endpoints};

use crate::support::{TOKEN, endpoint};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn refusal(change: impl FnOnce(&mut EndpointConfig)) -> (String, &'static str, String) {
    let mut config = endpoint("http://127.0.0.1:9000/hooks");
    change(&mut config);
    let error = Endpoints::new(vec![config]).unwrap_err();
    (error.endpoint().to_owned(), error.key(), error.to_string())
}

fn refused_key(change: impl FnOnce(&mut EndpointConfig)) -> &'static str {
    refusal(change).1
}

#[test]
fn each_mistake_is_refused_by_endpoint_and_key() {
    assert_eq!(
        refusal(|config| config.timeout = Duration::ZERO),
        (
            "orders".to_owned(),
            "timeout",
            "endpoint \"orders\": `timeout` must be longer than nothing and no longer than a day".to_owned()
        )
    );
    assert_eq!(refused_key(|config| config.max_in_flight = 0), "max_in_flight");
    assert_eq!(
        refused_key(|config| config.breaker.min_calls = 0),
        "breaker.min_calls"
    );
    assert_eq!(
        refused_key(|config| config.breaker.window = Duration::ZERO),
        "breaker.window"
    );
    assert_eq!(
        refused_key(|config| config.breaker.cooldown = Duration::ZERO),
        "breaker.cooldown"
    );
    let too_long = DAY + Duration::from_nanos(1);
    assert_eq!(refused_key(|config| config.timeout = too_long), "timeout");
    assert_eq!(
        refused_key(|config| config.breaker.window = too_long),
        "breaker.window"
    );
    assert_eq!(
        refused_key(|config| config.breaker.cooldown = Duration::MAX),
        "breaker.cooldown"
    );
    for rate in [0.0, -0.5, 1.01, f64::NAN, f64::INFINITY] {
        assert_eq!(
            refused_key(|config| config.breaker.failure_rate = rate),
            "breaker.failure_rate"
        );
    }
    for name in ["", "a b", "a/b", "ä", &"x".repeat(65)] {
        assert_eq!(
            refused_key(|config| config.name = name.to_owned()),
            "name",
            "{name:?}"
        );
    }
}

#[test]
fn a_url_that_cannot_be_called_is_refused_without_being_printed() {
    for url in [
        "SECRETTOKEN",
        "/SECRETTOKEN",
        "http://",
        "http:///SECRETTOKEN:x:y",
        "ftp://SECRETTOKEN@host/",
        "file:///SECRETTOKEN",
        "http://user:SECRETTOKEN@host:99999/",
        "http://[::1/SECRETTOKEN",
    ] {
        let (_, key, message) = refusal(|config| config.url = url.to_owned());

        assert_eq!(key, "url", "{url}");
        assert!(!message.contains(TOKEN), "{message}");
    }
}

#[test]
fn a_secret_that_is_none_is_refused_without_being_printed() {
    for secret in ["", "whsec_", "whsec_SECRETTOKEN!"] {
        let (_, key, message) = refusal(|config| config.signing_secret = Some(secret.to_owned()));

        assert_eq!(key, "signing_secret", "{secret}");
        assert!(!message.contains(TOKEN), "{message}");
    }
}

#[test]
fn two_endpoints_of_one_name_are_refused() {
    let config = endpoint("http://127.0.0.1:9000/");

    let error = Endpoints::new(vec![config.clone(), config]).unwrap_err();

    assert_eq!((error.endpoint(), error.key()), ("orders", "name"));
}

#[test]
fn what_is_at_the_limits_is_accepted() {
    let mut config = endpoint("https://hooks.example/ünïcode path?q=ü");
    config.name = "x".repeat(64);
    config.timeout = Duration::from_nanos(1);
    config.max_in_flight = 1;
    config.breaker = BreakerConfig {
        failure_rate: 1.0,
        min_calls: 1,
        window: Duration::from_nanos(1),
        cooldown: Duration::from_nanos(1),
    };

    let endpoints = Endpoints::new(vec![config]).unwrap();

    assert_eq!(endpoints.names(), ["x".repeat(64)]);
}

#[test]
fn times_of_a_day_are_accepted() {
    let mut config = endpoint("http://127.0.0.1:9000/");
    config.timeout = DAY;
    config.breaker.window = DAY;
    config.breaker.cooldown = DAY;

    assert!(Endpoints::new(vec![config]).is_ok());
}

#[test]
fn a_refused_reload_changes_nothing() {
    let endpoints = Endpoints::new(vec![endpoint("http://127.0.0.1:9000/")]).unwrap();
    let other = EndpointConfig {
        name: "mail".to_owned(),
        ..endpoint("http://127.0.0.1:9000/")
    };

    endpoints.reload(vec![other, endpoint("no url")]).unwrap_err();

    assert_eq!(endpoints.names(), ["orders"]);
}

#[test]
fn a_configuration_does_not_print_url_and_secret() {
    let mut config = endpoint(format!("http://user:{TOKEN}@host/{TOKEN}"));
    config.signing_secret = Some(TOKEN.to_owned());

    assert!(!format!("{config:?}").contains(TOKEN));
    assert!(!format!("{:?}", Endpoints::new(vec![endpoint(config.url)])).contains(TOKEN));
}
