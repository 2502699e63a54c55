use std::collections::BTreeSet;

use super::*;

/// Reads a configuration as if it stood in `posthaste.toml` of an empty folder.
fn load(text: &str, environment: Environment) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("posthaste.toml");
    std::fs::write(&file, text).unwrap();
    Settings::new(Some(file), environment)
        .load(Scope::Everything)
        .map_err(|error| {
            let hints: Vec<String> = error
                .hints()
                .iter()
                .map(|hint| format!("\nhint: {hint}"))
                .collect();
            format!("{error}{}", hints.concat()).replace(&format!("{}/", folder.path().display()), "")
        })
}

fn refused(text: &str) -> String {
    load(text, Environment::default()).unwrap_err()
}

const SHOP: &str = r#"
[[sources]]
name = "github"
scheme = "github"
secrets = ["s3cret-of-github"]

[[endpoints]]
name = "orders"
url = "http://user:s3cret-of-url@127.0.0.1:9000/hooks?token=s3cret-of-query"
signing_secret = "whsec_czNjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"

[[routes]]
source = "github"
endpoint = "orders"
"#;

#[test]
fn each_mistake_is_told_with_its_line_its_key_and_what_was_expected() {
    let table = [
        (
            "[http]\nlisen = 1",
            "posthaste.toml:2: http: unknown key \"lisen\", known: listen, max_body, max_body_in_flight, max_headers, read_timeout\nhint: did you mean \"listen\"?",
        ),
        (
            "\n[objects]\nurl = 'x'",
            "posthaste.toml:2: unknown key \"objects\", known: http, ledger, queue, workers, log, sources, endpoints, routes",
        ),
        (
            "[[api_keys]]\nname = 'x'",
            "posthaste.toml:1: unknown key \"api_keys\", known: http, ledger, queue, workers, log, sources, endpoints, routes",
        ),
        (
            "[http]\n\nmax_body = '25 bytes of'",
            "posthaste.toml:3: http.max_body: expected a size like \"25MiB\" or a number of bytes, found \"25 bytes of\"",
        ),
        (
            "[http]\nmax_body = true",
            "posthaste.toml:2: http.max_body: expected a size like \"25MiB\" or a number of bytes, found true or false",
        ),
        (
            "[http]\nmax_body = 0",
            "posthaste.toml:2: http.max_body: expected at least 1 byte, found 0",
        ),
        (
            "\nhttp = ['127.0.0.1:0']",
            "posthaste.toml:2: http: expected a table, found a list",
        ),
        (
            "[workers]\ngrace = '1s'\nconcurrency = 0",
            "posthaste.toml:3: workers.concurrency: concurrency must be from 1 to 10000, not 0",
        ),
        (
            "[[sources]]\nname = 'a'\nscheme = 'none'\nmax_body = 0",
            "posthaste.toml:4: sources[0].max_body: expected at least 1 byte, found 0",
        ),
        (
            "[[sources]]\nname = 'a'\nscheme = 'none'\nmax_body = '257MiB'",
            "posthaste.toml:4: sources[0].max_body: expected at most http.max_body_in_flight, or the largest body would never be taken",
        ),
        (
            "[[sources]]\nname = 'a'\nscheme = 'none'\n[[endpoints]]\nname = 'o'\nurl = 'http://127.0.0.1:9/'\n[[routes]]\nsource = 'a'\nendpoint = 'o'\n[[routes]]\nsource = 'a'\nendpoint = 'o'\nevent_types = ['a', '']",
            "posthaste.toml:13: routes[1].event_types[1]: expected an event type, or \"*\" for all, found nothing",
        ),
        (
            "[http]\nread_timeout = 30",
            "posthaste.toml:2: http.read_timeout: expected a text in quotes, found a whole number",
        ),
        (
            "[http]\nread_timeout = 'soon'",
            "posthaste.toml:2: http.read_timeout: \"soon\" is not a length of time like \"10s\", \"250ms\" or \"1h 30m\"",
        ),
        (
            "[http]\nlisten = '8080'",
            "posthaste.toml:2: http.listen: expected an address like \"127.0.0.1:8080\", found \"8080\"",
        ),
        (
            "[ledger]\nurl = 'postgre://db'",
            "posthaste.toml:2: ledger.url: expected sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE\nhint: did you mean \"postgres\"?",
        ),
        (
            "[ledger]\nmax_connections = -1",
            "posthaste.toml:2: ledger.max_connections: expected a whole number that is not negative, found -1",
        ),
        (
            "[queue]\nurl = 'env:NOWHERE'",
            "posthaste.toml:2: queue.url: the environment variable \"NOWHERE\" is not set\nhint: export NOWHERE=...",
        ),
        (
            "[log]\nformat = 'jsno'",
            "posthaste.toml:2: log.format: unknown word \"jsno\", known: pretty, json\nhint: did you mean \"json\"?",
        ),
        (
            "log = 5",
            "posthaste.toml:1: log: expected a table, found a whole number",
        ),
        (
            "[[sources]]\nname = 'a'",
            "posthaste.toml:1: sources[0]: the key \"scheme\" is missing",
        ),
        (
            "[[sources]]\nname = 'a'\nscheme = 'githbu'",
            "posthaste.toml:3: sources[0].scheme: unknown word \"githbu\", known: github, stripe, standard-webhooks, hmac, none\nhint: did you mean \"github\"?",
        ),
        (
            "[[sources]]\nname = 'a'\nscheme = 'github'\nsecrets = 's3cret'",
            "posthaste.toml:4: sources[0].secrets: expected a list in square brackets, found a text",
        ),
        (
            "[[sources]]\nname = 'a'\nscheme = 'github'\nsecrets = ['']",
            "posthaste.toml:4: sources[0].secrets[0]: the secret is empty",
        ),
        (
            "[[sources]]\nname = 'a'\nscheme = { hmac = { header = 'X-Sig', algorithm = 'sha256', encoding = 'hexx' } }",
            "posthaste.toml:3: sources[0].scheme.hmac.encoding: unknown word \"hexx\", known: hex, base64\nhint: did you mean \"hex\"?",
        ),
        (
            "[[endpoints]]\nname = 'a'\nurl = 'http://h'\nretry = { base = '2h' }",
            "posthaste.toml:4: endpoints[0].retry: base (2h) must not be longer than max (1h)",
        ),
        (
            "[[endpoints]]\nname = 'a'\nurl = 'http://h'\nbreaker = { windwo = '2h' }",
            "posthaste.toml:4: endpoints[0].breaker: unknown key \"windwo\", known: failure_rate, min_calls, window, cooldown\nhint: did you mean \"window\"?",
        ),
        (
            "a = 1\na = 2",
            "posthaste.toml:2: this is not TOML: duplicate key",
        ),
        (
            "[http]\nlisten = \n",
            "posthaste.toml:2: listen: this is not TOML: string values must be quoted, expected literal string",
        ),
        (
            "[http\nlisten = 's3cret'",
            "posthaste.toml:1: this is not TOML: unclosed table, expected `]`",
        ),
    ];
    for (text, message) in table {
        assert_eq!(refused(text), message, "of {text}");
    }
}

#[test]
fn a_route_to_a_misspelt_endpoint_names_the_nearest() {
    let text = format!("{SHOP}\n[[routes]]\nsource = \"github\"\nendpoint = \"ordesr\"\n");

    let error = refused(&text);

    assert_eq!(
        error,
        "posthaste.toml:18: routes[1].endpoint: no endpoint is called \"ordesr\", known: orders\n\
         hint: did you mean \"orders\"?"
    );
}

#[test]
fn what_a_room_refuses_gets_the_line_of_its_key() {
    let no_secret = refused("[[sources]]\nname = 'a'\nscheme = 'github'\nsecrets = []");
    let bad_url = refused("[[endpoints]]\nname = 'a'\nurl = 'ftp://host'");
    let twice = refused(&format!(
        "{SHOP}\n[[endpoints]]\nname = \"orders\"\nurl = \"http://h\"\n"
    ));

    assert!(
        no_secret.starts_with("posthaste.toml:4: sources[0].secrets: "),
        "{no_secret}"
    );
    assert!(
        bad_url.starts_with("posthaste.toml:3: endpoints[0].url: "),
        "{bad_url}"
    );
    assert!(
        twice.starts_with("posthaste.toml:17: endpoints[1].name: another endpoint"),
        "{twice}"
    );
}

#[test]
fn all_mistakes_between_sections_are_told_at_once() {
    let error = refused("[http]\nlisten = 'x'\n[ledger]\nurl = 'x'\n[queue]\nurl = 'x'");

    assert_eq!(error.lines().count(), 3, "{error}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Settings::new(Some("/nowhere/posthaste.toml".into()), Environment::default())
        .load(Scope::Everything)
        .unwrap_err();

    assert!(
        error
            .to_string()
            .starts_with("the file /nowhere/posthaste.toml cannot be read: "),
        "{error}"
    );
}

#[test]
fn the_environment_overrides_every_kind_of_value() {
    let environment = Environment::from([
        ("POSTHASTE__LEDGER__URL", "postgres://db/posthaste"),
        ("POSTHASTE__LEDGER__MAX_CONNECTIONS", "3"),
        ("POSTHASTE__HTTP__MAX_BODY", "1MiB"),
        ("POSTHASTE__LOG__FORMAT", "json"),
        ("POSTHASTE__ENDPOINTS__0__RETRY__FACTOR", "3.5"),
        ("POSTHASTE__SOURCES__0__SECRETS__1", "env:SECOND"),
        ("POSTHASTE__ROUTES__1__SOURCE", "github"),
        ("POSTHASTE__ROUTES__1__ENDPOINT", "orders"),
        ("SECOND", "second"),
    ]);

    let config = load(SHOP, environment).unwrap();

    assert_eq!(config.ledger.url.expose(), "postgres://db/posthaste");
    assert_eq!(config.ledger.max_connections, 3);
    assert_eq!(config.http.max_body, bytesize::ByteSize::mib(1));
    assert_eq!(config.log.format, LogFormat::Json);
    assert!((config.endpoints[0].retry.factor - 3.5).abs() < f64::EPSILON);
    assert_eq!(config.sources[0].secrets[1].expose(), "second");
    assert_eq!(config.routes.len(), 2);
}

#[test]
fn a_mistake_in_the_environment_names_the_variable() {
    let one = |name: &str, value: &str| load("", Environment::from([(name, value)])).unwrap_err();

    assert_eq!(
        one("POSTHASTE__LEDGER__MAX_CONNECTIONS", "many"),
        "environment variable POSTHASTE__LEDGER__MAX_CONNECTIONS: ledger.max_connections: \
         expected a whole number that is not negative, found \"many\""
    );
    assert!(one("POSTHASTE__LEDGER__ULR", "x").ends_with("hint: did you mean \"url\"?"));
    assert!(one("POSTHASTE__ROUTES__1__SOURCE", "x").contains("the list has 0, so the next is 0"));
}

#[test]
fn an_item_of_the_list_is_added_in_the_order_of_its_number() {
    let names: Vec<(String, String)> = (0..11)
        .flat_map(|number| {
            [
                (
                    format!("POSTHASTE__ENDPOINTS__{number}__NAME"),
                    format!("e{number}"),
                ),
                (
                    format!("POSTHASTE__ENDPOINTS__{number}__URL"),
                    "http://h".to_owned(),
                ),
            ]
        })
        .collect();
    let pairs: [(&str, &str); 22] =
        std::array::from_fn(|place| (names[place].0.as_str(), names[place].1.as_str()));

    let config = load("", Environment::from(pairs)).unwrap();

    assert_eq!(config.endpoints[10].name, "e10");
}

#[test]
fn no_secret_is_printed() {
    let environment = Environment::from([
        (
            "POSTHASTE__LEDGER__URL",
            "postgres://user:s3cret-of-ledger@db/posthaste",
        ),
        ("POSTHASTE__QUEUE__URL", "redis://:s3cret-of-queue@redis"),
    ]);

    let printed = format!("{:?} {:?}", load(SHOP, environment.clone()).unwrap(), environment);

    assert!(!printed.contains("s3cret"), "{printed}");
    assert!(!printed.contains("czNjcmV0"), "{printed}");
}

#[test]
fn an_error_about_a_secret_does_not_print_it() {
    let wrong_place = refused("[http]\nread_timeout = ['s3cret']");
    let wrong_scheme = refused("[ledger]\nurl = 's3cret://s3cret'");
    let no_toml = refused("[ledger]\nurl = 's3cret\n");
    let bad_key =
        refused("[[sources]]\nname = 'a'\nscheme = 'standard-webhooks'\nsecrets = ['whsec_!s3cret!']");

    for error in [wrong_place, wrong_scheme, no_toml, bad_key] {
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[test]
fn an_operator_needs_no_secrets_of_endpoints_to_look_into_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("posthaste.toml");
    std::fs::write(&file, SHOP.replace("s3cret-of-github", "env:NOT_HERE")).unwrap();
    let settings = Settings::new(Some(file), Environment::default());

    assert!(settings.load(Scope::Ledger).is_ok());
    assert!(settings.load(Scope::Everything).is_err());
}

/// The default file with its examples: lines that begin with `#` and no space.
fn with_examples() -> String {
    DEFAULT
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(example) if !example.is_empty() && !example.starts_with(' ') => example,
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_default_file_says_what_the_code_does_without_it() {
    let written = load(DEFAULT, Environment::default()).unwrap();
    let built_in = Config::default();

    assert_eq!(format!("{written:?}"), format!("{built_in:?}"));
    assert_eq!(written.ledger.url.expose(), built_in.ledger.url.expose());
    assert_eq!(written.queue.url.expose(), built_in.queue.url.expose());
}

#[test]
fn the_examples_in_the_default_file_are_the_defaults_of_their_entries() {
    let environment = Environment::from([
        ("STRIPE_WEBHOOK_SECRET", "whsec_x"),
        ("ORDERS_SIGNING_SECRET", "whsec_czNjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"),
    ]);
    let bare = "[[sources]]\nname = 'stripe'\nscheme = 'stripe'\nsecrets = ['x']\n\
                [[endpoints]]\nname = 'orders'\nurl = 'http://127.0.0.1:9000/hooks'\n\
                [[routes]]\nsource = 'stripe'\nendpoint = 'orders'\n";

    let written = load(&with_examples(), environment).unwrap();
    let built_in = load(bare, Environment::default()).unwrap();

    let essence = |config: &Config| {
        let endpoint = &config.endpoints[0];
        let parts = (
            &endpoint.timeout,
            endpoint.max_in_flight,
            &endpoint.retry,
            &endpoint.breaker,
        );
        format!("{parts:?} {:?}", config.routes)
    };
    assert_eq!(essence(&written), essence(&built_in));
}

#[test]
fn the_default_file_has_every_key() {
    let root = Entry::parse(&with_examples(), "default.toml".into()).unwrap();
    let keys = |section: &str| -> BTreeSet<String> {
        let mut entry = &root;
        for key in section.split('.').filter(|key| !key.is_empty()) {
            let tree::Node::Table(fields) = &entry.node else {
                panic!("{section} is no table")
            };
            entry = &fields.iter().find(|field| field.key == key).unwrap().entry;
            if let tree::Node::List(items) = &entry.node {
                entry = &items[0];
            }
        }
        let tree::Node::Table(fields) = &entry.node else {
            panic!("{section} is no table")
        };
        fields.iter().map(|field| field.key.clone()).collect()
    };
    // What an unknown key is told are all known ones.
    let known = |text: &str| -> BTreeSet<String> {
        let error = refused(text);
        let list = error.lines().next().unwrap().split("known: ").nth(1).unwrap();
        list.split(", ").map(str::to_owned).collect()
    };
    for (section, text) in [
        ("", "zzzzzz = 1"),
        ("http", "[http]\nzzzzzz = 1"),
        ("ledger", "[ledger]\nzzzzzz = 1"),
        ("queue", "[queue]\nzzzzzz = 1"),
        ("workers", "[workers]\nzzzzzz = 1"),
        ("log", "[log]\nzzzzzz = 1"),
        ("sources", "[[sources]]\nzzzzzz = 1"),
        ("endpoints", "[[endpoints]]\nzzzzzz = 1"),
        ("endpoints.retry", "[[endpoints]]\nretry = { zzzzzz = 1 }"),
        ("endpoints.breaker", "[[endpoints]]\nbreaker = { zzzzzz = 1 }"),
        ("routes", "[[routes]]\nzzzzzz = 1"),
    ] {
        assert_eq!(keys(section), known(text), "in [{section}]");
    }
}
