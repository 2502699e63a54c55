//! Published and collected signature vectors, read from where the cases are.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![expect(clippy::print_stdout, reason = "the counts belong to the result")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use posthaste_ingress::Scheme;
use posthaste_jobs::Timestamp;
use serde::Deserialize;

#[derive(Deserialize)]
struct Vector {
    id: String,
    provider: String,
    secrets: Vec<String>,
    public_key: Option<String>,
    headers: Vec<(String, String)>,
    body: Option<String>,
    body_base64: Option<String>,
    now: i64,
    tolerance_s: Option<u64>,
    expect: String,
    policy_note: Option<String>,
}

impl Vector {
    fn body(&self) -> Vec<u8> {
        match (&self.body_base64, &self.body) {
            (Some(encoded), _) => BASE64_STANDARD.decode(encoded).unwrap(),
            (None, Some(text)) => text.clone().into_bytes(),
            (None, None) => Vec::new(),
        }
    }

    fn headers(&self) -> HeaderMap {
        let pairs = self.headers.iter().map(|(name, value)| {
            (
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            )
        });
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value);
        }
        headers
    }

    /// A secret that is refused when the configuration is read verifies nothing either.
    fn verdict(&self, scheme: &Scheme) -> String {
        let secrets: Vec<String> = self.secrets.iter().chain(&self.public_key).cloned().collect();
        let verifier = match scheme.verifier(&secrets, self.tolerance_s.map(Duration::from_secs)) {
            Ok(verifier) => verifier.expect("the scheme signs"),
            Err((_, invalid)) => return format!("invalid: secret: {invalid}"),
        };
        let now = Timestamp::from_millis(self.now * 1000);
        match verifier.verify(&self.headers(), &self.body(), now) {
            Ok(()) => "valid".to_owned(),
            Err(refusal) => format!("invalid: {refusal}"),
        }
    }
}

/// Returns the collected vectors; none, with a word on it, where there are none.
fn vectors() -> Option<Vec<Vector>> {
    let cases = std::env::var_os("POSTHASTE_CASES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases"),
        PathBuf::from,
    );
    let file = cases.join("../vectors/signatures.json");
    if !cases.is_dir() {
        println!("SKIPPED: there are no cases in {}", cases.display());
        return None;
    }
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    Some(serde_json::from_str(&text).unwrap())
}

fn hmac(toml: &str) -> Scheme {
    #[derive(Deserialize)]
    struct Source {
        scheme: Scheme,
    }
    toml::from_str::<Source>(&format!("scheme = {{ hmac = {{ {toml} }} }}"))
        .unwrap()
        .scheme
}

/// Verifies every vector of a provider, prints the counts, and fails on any difference.
fn check(provider: &str, scheme: &Scheme, left_out: &[&str]) {
    let Some(vectors) = vectors() else { return };
    let vectors: Vec<Vector> = vectors
        .into_iter()
        .filter(|vector| vector.provider == provider && !left_out.contains(&vector.id.as_str()))
        .collect();
    let mut counts = BTreeMap::new();
    let mut different = Vec::new();
    for vector in &vectors {
        let verdict = vector.verdict(scheme);
        *counts.entry(vector.expect.as_str()).or_insert(0) += 1;
        if verdict.split(':').next() != Some(vector.expect.as_str()) {
            let Vector {
                id,
                expect,
                policy_note,
                ..
            } = vector;
            different.push(format!(
                "{id}: expected {expect}, got {verdict} ({policy_note:?})"
            ));
        }
    }
    println!("{provider}: {counts:?}");

    assert!(!vectors.is_empty(), "there is no vector of {provider}");
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn github_vectors_end_as_expected() {
    check("github", &Scheme::Github, &[]);
}

#[test]
fn stripe_vectors_end_as_expected() {
    check("stripe", &Scheme::Stripe, &[]);
}

#[test]
fn standard_webhooks_vectors_end_as_expected() {
    check("standard-webhooks", &Scheme::StandardWebhooks, &[]);
}

#[test]
fn svix_vectors_end_as_expected() {
    check("svix", &Scheme::StandardWebhooks, &[]);
}

#[test]
fn shopify_vectors_end_as_expected_by_a_scheme_spelt_out() {
    // Shopify's library also demands headers that are not signed; and its other header family is a
    // source of its own here.
    let not_about_the_mac = ["shopify-06", "shopify-08", "shopify-09", "shopify-13"];
    let scheme = hmac(r#"header = "X-Shopify-Hmac-Sha256", algorithm = "sha256", encoding = "base64""#);

    check("shopify", &scheme, &not_about_the_mac);
}

#[test]
fn gitea_and_razorpay_vectors_end_as_expected_by_a_scheme_spelt_out() {
    check(
        "gitea",
        &hmac(r#"header = "X-Gitea-Signature", algorithm = "sha256", encoding = "hex""#),
        &[],
    );
    check(
        "razorpay",
        &hmac(r#"header = "X-Razorpay-Signature", algorithm = "sha256", encoding = "hex""#),
        &[],
    );
}

#[test]
fn bitbucket_and_line_vectors_end_as_expected_by_a_scheme_spelt_out() {
    check(
        "bitbucket",
        &hmac(r#"header = "X-Hub-Signature", algorithm = "sha256", encoding = "hex", prefix = "sha256=""#),
        &[],
    );
    check(
        "line",
        &hmac(r#"header = "X-Line-Signature", algorithm = "sha256", encoding = "base64""#),
        &[],
    );
}
