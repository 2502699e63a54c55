//! What verification lets in, and what it must not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use posthaste_ingress::{InvalidSecret, Refusal, Scheme, Verifier};
use posthaste_jobs::Timestamp;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

const NOW: Timestamp = Timestamp::from_millis(1_796_095_930_000);
const BODY: &[u8] = br#"{"id":"evt_1","type":"plan.created"}"#;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Source {
    scheme: Scheme,
}

fn scheme(toml: &str) -> Scheme {
    toml::from_str::<Source>(&format!("scheme = {toml}"))
        .unwrap()
        .scheme
}

/// Every scheme that signs, with a secret of its form.
fn signing() -> Vec<(Scheme, &'static str)> {
    let hmac = |algorithm: &str, encoding: &str| {
        scheme(&format!(
            r#"{{ hmac = {{ header = "X-Sig", algorithm = "{algorithm}", encoding = "{encoding}", prefix = "v=", id_header = "X-Id", type_header = "X-Type" }} }}"#
        ))
    };
    vec![
        (Scheme::Github, "mysecret"),
        (Scheme::Stripe, "whsec_test_secret"),
        (Scheme::StandardWebhooks, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        (hmac("sha1", "hex"), "mysecret"),
        (hmac("sha256", "base64"), "mysecret"),
        (hmac("sha512", "hex"), "mysecret"),
    ]
}

fn verifier(scheme: &Scheme, secrets: &[&str]) -> Verifier {
    let secrets: Vec<String> = secrets.iter().map(|&secret| secret.to_owned()).collect();
    scheme.verifier(&secrets, None).unwrap().unwrap()
}

fn signed(scheme: &Scheme, secret: &str, body: &[u8], now: Timestamp) -> HeaderMap {
    headers(&scheme.sign(secret, "evt_1", "plan.created", body, now).unwrap())
}

fn headers(pairs: &[(String, String)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    headers
}

#[test]
fn what_a_scheme_signs_it_lets_in_with_any_of_several_secrets() {
    for (scheme, secret) in signing() {
        let headers = signed(&scheme, secret, BODY, NOW);
        let rotating = verifier(&scheme, &["b3RoZXIgc2VjcmV0", secret]);
        let other = verifier(&scheme, &["b3RoZXIgc2VjcmV0"]);

        assert_eq!(rotating.verify(&headers, BODY, NOW), Ok(()), "{scheme:?}");
        assert_eq!(
            other.verify(&headers, BODY, NOW),
            Err(Refusal::Mismatch),
            "{scheme:?}"
        );
    }
}

#[test]
fn a_source_without_a_secret_lets_nothing_in() {
    for (scheme, secret) in signing() {
        let headers = signed(&scheme, secret, BODY, NOW);

        assert_eq!(
            verifier(&scheme, &[]).verify(&headers, BODY, NOW),
            Err(Refusal::NoSecret)
        );
    }
}

#[test]
fn a_request_without_the_signature_header_is_refused_as_such() {
    for (scheme, secret) in signing() {
        let refused = verifier(&scheme, &[secret]).verify(&HeaderMap::new(), BODY, NOW);

        assert!(
            matches!(refused, Err(Refusal::Missing { .. })),
            "{scheme:?}: {refused:?}"
        );
    }
}

#[test]
fn a_timestamp_at_the_tolerance_is_let_in_and_one_second_past_it_is_not() {
    for scheme in [Scheme::Stripe, Scheme::StandardWebhooks] {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let headers = signed(&scheme, secret, BODY, NOW);
        let verifier = verifier(&scheme, &[secret]);
        let by = Duration::from_secs(301);

        assert_eq!(
            verifier.verify(&headers, BODY, NOW + Duration::from_secs(300)),
            Ok(())
        );
        assert_eq!(
            verifier.verify(&headers, BODY, NOW - Duration::from_secs(300)),
            Ok(())
        );
        assert_eq!(
            verifier.verify(&headers, BODY, NOW + by),
            Err(Refusal::TooOld { by })
        );
        assert_eq!(
            verifier.verify(&headers, BODY, NOW - by),
            Err(Refusal::TooNew { by })
        );
    }
}

#[test]
fn an_old_timestamp_with_a_wrong_signature_is_a_mismatch_and_not_too_old() {
    let headers = signed(&Scheme::Stripe, "other", BODY, NOW - Duration::from_secs(900));

    let refused = verifier(&Scheme::Stripe, &["mysecret"]).verify(&headers, BODY, NOW);

    assert_eq!(refused, Err(Refusal::Mismatch));
}

#[test]
fn the_sha1_header_of_github_is_not_looked_at() {
    let mut headers = HeaderMap::new();
    headers.insert(
        "x-hub-signature",
        HeaderValue::from_static("sha1=126f2c800419c60137ce748d7672e77b65cf16d6"),
    );

    let refused = verifier(&Scheme::Github, &["0123456789abcdef"]).verify(&headers, b"{\"yo\":true}", NOW);

    assert!(matches!(refused, Err(Refusal::Missing { .. })));
}

#[test]
fn a_secret_that_cannot_be_meant_is_refused_when_it_is_read() {
    let refusal = |scheme: &Scheme, secret: &str| scheme.verifier(&[secret.to_owned()], None).unwrap_err().1;

    assert_eq!(refusal(&Scheme::Github, ""), InvalidSecret::Empty);
    assert_eq!(refusal(&Scheme::Github, "a\n"), InvalidSecret::Untrimmed);
    assert_eq!(refusal(&Scheme::StandardWebhooks, "whsec_"), InvalidSecret::Empty);
    assert_eq!(
        refusal(&Scheme::StandardWebhooks, "whsec_*"),
        InvalidSecret::NotBase64
    );
    assert_eq!(
        refusal(&Scheme::StandardWebhooks, "whpk_AAAA"),
        InvalidSecret::NotEd25519
    );
}

#[test]
fn a_public_key_does_not_sign() {
    let key = "whpk_+dujY2Huyz+8u+KzTQnqP00CjnLXmQ4o1H5GFBfQR4c=";

    let refused = Scheme::StandardWebhooks.sign(key, "evt_1", "a", BODY, NOW);

    assert_eq!(refused, Err(InvalidSecret::CannotSign));
}

#[test]
fn debug_shows_no_secret() {
    for (scheme, secret) in signing() {
        let shown = format!("{:?}", verifier(&scheme, &[secret]));

        assert!(!shown.contains(secret) && !shown.contains("MfKQ"), "{shown}");
    }
}

#[test]
fn schemes_are_written_as_documented_and_read_back() {
    for written in [
        r#""github""#,
        r#""stripe""#,
        r#""standard-webhooks""#,
        r#""none""#,
        r#"{ hmac = { header = "X-Sig", algorithm = "sha512", encoding = "hex" } }"#,
    ] {
        let source = Source {
            scheme: scheme(written),
        };
        let rewritten = toml::to_string(&source).unwrap();

        assert_eq!(
            toml::from_str::<Source>(&rewritten).unwrap(),
            source,
            "{rewritten}"
        );
    }
}

#[test]
fn a_scheme_that_cannot_be_meant_is_refused_by_name() {
    let refusal = |toml: &str| {
        toml::from_str::<Source>(&format!("scheme = {toml}"))
            .unwrap_err()
            .to_string()
    };

    assert!(refusal(r#""githb""#).contains("githb"));
    assert!(
        refusal(r#"{ hmac = { header = "X Sig", algorithm = "sha256", encoding = "hex" } }"#)
            .contains("X Sig")
    );
    assert!(refusal(r#"{ hmac = { header = "X", algorithm = "md5", encoding = "hex" } }"#).contains("md5"));
    assert!(
        refusal(r#"{ hmac = { header = "X", algorithm = "sha1", encoding = "hex", prefx = "" } }"#)
            .contains("prefx")
    );
}

/// Bytes of a header as clients can send them.
fn value() -> impl Strategy<Value = HeaderValue> {
    let hostile = prop::collection::vec(
        any::<u8>().prop_filter("a header has no control characters", |byte| {
            *byte == 9 || (*byte >= 32 && *byte != 127)
        }),
        0..120,
    );
    let close = "(t=[0-9]{0,25}|v1[,=][0-9a-fA-F+/=]{0,70}|v1a,[A-Za-z0-9+/=]{0,90}|sha256=[0-9a-f]{0,66}|[ ,;=]){0,6}";
    prop_oneof![
        hostile.prop_map(|bytes| HeaderValue::from_bytes(&bytes).unwrap()),
        close.prop_map(|text| HeaderValue::from_str(&text).unwrap()),
        "-?[0-9]{0,25}".prop_map(|text| HeaderValue::from_str(&text).unwrap()),
    ]
}

const NAMES: [&str; 9] = [
    "x-hub-signature-256",
    "stripe-signature",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "svix-signature",
    "x-sig",
    "x-id",
    "x-type",
];

proptest! {
    #[test]
    fn no_request_is_let_in_by_chance_or_makes_verification_panic(
        lines in prop::collection::vec((prop::sample::select(&NAMES[..]), value()), 0..8),
        body in prop::collection::vec(any::<u8>(), 0..200),
        now in any::<i64>(),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name, value);
        }
        for (scheme, secret) in signing() {
            let verdict = verifier(&scheme, &[secret]).verify(&headers, &body, Timestamp::from_millis(now));
            prop_assert!(verdict.is_err());
        }
    }

    #[test]
    fn no_secret_makes_reading_it_panic(secret in any::<String>()) {
        for (scheme, _) in signing() {
            let _ = scheme.verifier(std::slice::from_ref(&secret), None);
            let _ = scheme.verifier(&[format!("whpk_{secret}")], None);
        }
    }

    #[test]
    fn a_body_with_one_bit_changed_is_refused(
        body in prop::collection::vec(any::<u8>(), 1..200),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let mut changed = body.clone();
        changed[at.index(body.len())] ^= 1 << bit;
        for (scheme, secret) in signing() {
            let headers = signed(&scheme, secret, &body, NOW);
            let verifier = verifier(&scheme, &[secret]);
            prop_assert_eq!(verifier.verify(&headers, &body, NOW), Ok(()));
            prop_assert_eq!(verifier.verify(&headers, &changed, NOW), Err(Refusal::Mismatch));
        }
    }

    /// Upper-case hexadecimal digits write the same signature, so that bit is left alone.
    #[test]
    fn a_signature_with_one_bit_changed_is_refused(at in any::<prop::sample::Index>(), bit in 0..7_u8) {
        for (scheme, secret) in signing() {
            let mut pairs = scheme.sign(secret, "evt_1", "plan.created", BODY, NOW).unwrap();
            let (_, signature) = pairs.last_mut().unwrap();
            let at = at.index(signature.len());
            let before = signature.as_bytes()[at];
            let after = before ^ (1 << bit);
            let same_digit = before.is_ascii_hexdigit() && after.eq_ignore_ascii_case(&before);
            let hexadecimal = !matches!(scheme, Scheme::StandardWebhooks) && !signature.ends_with('=');
            if !(32..127).contains(&after) || (same_digit && hexadecimal) {
                continue;
            }
            let mut bytes = std::mem::take(signature).into_bytes();
            bytes[at] = after;
            *signature = String::from_utf8(bytes).unwrap();

            let verdict = verifier(&scheme, &[secret]).verify(&headers(&pairs), BODY, NOW);
            prop_assert!(verdict.is_err(), "{:?} let in {:?}", scheme, pairs);
        }
    }

    #[test]
    fn a_secret_with_one_bit_changed_does_not_verify(at in any::<prop::sample::Index>(), bit in 0..7_u8) {
        for (scheme, secret) in signing() {
            let mut bytes = secret.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            let Ok(verifier) = scheme.verifier(&[changed], None) else { continue };

            let headers = signed(&scheme, secret, BODY, NOW);
            prop_assert!(verifier.unwrap().verify(&headers, BODY, NOW).is_err());
        }
    }
}
