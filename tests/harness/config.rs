//! `posthaste.toml`.

/// Signs deliveries of sources made by [`Config::github`].
pub const GITHUB_SECRET: &str = "it-s-a-secret-of-github";
/// Signs events of sources made by [`Config::stripe`].
pub const STRIPE_SECRET: &str = "whsec_it_is_a_secret_of_stripe";
/// Signs webhooks of sources made by [`Config::standard`].
pub const STANDARD_SECRET: &str = "whsec_aXQtaXMtYS1zdGFuZGFyZC1zZWNyZXQtMDEyMw==";
/// Signs what is delivered to an [`Endpoint`].
pub const SIGNING_SECRET: &str = "whsec_aXQtaXMtb3VyLXNpZ25pbmctc2VjcmV0LTAxMjM=";

/// A configuration to be written to a file. The stores are added by the set-up it is used in.
#[derive(Clone, Debug, Default)]
pub struct Config {
    settings: Vec<(String, String)>,
    lists: String,
}

impl Config {
    /// One without sources, endpoints and routes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// GitHub's source `github`, the endpoint `orders` at `url`, and the route between them.
    #[must_use]
    pub fn github_to(url: &str) -> Self {
        Self::new()
            .github("github")
            .endpoint(Endpoint::new("orders", url))
            .route("github", "orders")
    }

    /// Sets `section.key` to a value written in TOML; the last one counts.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.settings.retain(|(other, _)| other != key);
        self.settings.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Adds a source with the lines given besides its name.
    #[must_use]
    pub fn source(mut self, name: &str, lines: &str) -> Self {
        self.lists
            .push_str(&format!("[[sources]]\nname = \"{name}\"\n{lines}\n\n"));
        self
    }

    /// Adds a source of GitHub.
    #[must_use]
    pub fn github(self, name: &str) -> Self {
        self.source(
            name,
            &format!("scheme = \"github\"\nsecrets = [\"{GITHUB_SECRET}\"]"),
        )
    }

    /// Adds a source of Stripe.
    #[must_use]
    pub fn stripe(self, name: &str) -> Self {
        self.source(
            name,
            &format!("scheme = \"stripe\"\nsecrets = [\"{STRIPE_SECRET}\"]"),
        )
    }

    /// Adds a source of Standard Webhooks.
    #[must_use]
    pub fn standard(self, name: &str) -> Self {
        self.source(
            name,
            &format!("scheme = \"standard-webhooks\"\nsecrets = [\"{STANDARD_SECRET}\"]"),
        )
    }

    /// Adds an endpoint.
    #[must_use]
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.lists.push_str(&endpoint.text());
        self
    }

    /// Sends all events of a source to an endpoint.
    #[must_use]
    pub fn route(self, source: &str, endpoint: &str) -> Self {
        self.route_of(source, "*", endpoint)
    }

    /// Sends events of one type, or pattern of types, to an endpoint.
    #[must_use]
    pub fn route_of(mut self, source: &str, event_type: &str, endpoint: &str) -> Self {
        self.lists.push_str(&format!(
            "[[routes]]\nsource = \"{source}\"\nevent_types = [\"{event_type}\"]\nendpoint = \"{endpoint}\"\n\n"
        ));
        self
    }

    /// The file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (key, value) in &self.settings {
            // Dotted keys before the first table stand for their sections.
            text.push_str(&format!("{key} = {value}\n"));
        }
        text + "\n" + &self.lists
    }
}

/// An `[[endpoints]]` entry. It retries fast, and its breaker stays closed, unless told otherwise.
#[derive(Clone, Debug)]
pub struct Endpoint {
    name: String,
    url: String,
    timeout: String,
    max_in_flight: u32,
    retry: String,
    breaker: String,
}

impl Endpoint {
    /// One that is to be reached at `url`.
    #[must_use]
    pub fn new(name: &str, url: &str) -> Self {
        Self {
            name: name.to_owned(),
            url: url.to_owned(),
            timeout: "10s".to_owned(),
            max_in_flight: 32,
            retry: "{ max_attempts = 8, base = \"100ms\", factor = 1.5, max = \"1s\", jitter = 0.0 }"
                .to_owned(),
            breaker: "{ failure_rate = 1.0, min_calls = 100000, window = \"30s\", cooldown = \"1s\" }"
                .to_owned(),
        }
    }

    /// With a time limit for a call, like `"2s"`.
    #[must_use]
    pub fn timeout(mut self, timeout: &str) -> Self {
        timeout.clone_into(&mut self.timeout);
        self
    }

    /// With so many calls at once.
    #[must_use]
    pub const fn max_in_flight(mut self, calls: u32) -> Self {
        self.max_in_flight = calls;
        self
    }

    /// With so many attempts, `base` after the first and at most `max` after a later one.
    #[must_use]
    pub fn retry(mut self, max_attempts: u32, base: &str, max: &str) -> Self {
        self.retry = format!(
            "{{ max_attempts = {max_attempts}, base = \"{base}\", factor = 2.0, max = \"{max}\", jitter = 0.0 }}"
        );
        self
    }

    /// With a breaker that opens when half of at least `min_calls` calls have failed.
    #[must_use]
    pub fn breaker(mut self, min_calls: u32, cooldown: &str) -> Self {
        self.breaker = format!(
            "{{ failure_rate = 0.5, min_calls = {min_calls}, window = \"30s\", cooldown = \"{cooldown}\" }}"
        );
        self
    }

    fn text(&self) -> String {
        let Self {
            name,
            url,
            timeout,
            max_in_flight,
            retry,
            breaker,
        } = self;
        format!(
            "[[endpoints]]\nname = \"{name}\"\nurl = \"{url}\"\ntimeout = \"{timeout}\"\n\
             max_in_flight = {max_in_flight}\nsigning_secret = \"{SIGNING_SECRET}\"\n\
             retry = {retry}\nbreaker = {breaker}\n\n"
        )
    }
}
