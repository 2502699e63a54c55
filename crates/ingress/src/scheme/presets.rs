//! The providers, each after its own documentation.

use std::borrow::Cow;

use http::HeaderName;

use super::key::KeyForm;
use super::rules::{Algorithm, At, Encoding, HmacAlgorithm, Method, Part, Rules, Signature};

const SHA256: Algorithm = Algorithm::Hmac(HmacAlgorithm::Sha256);

/// GitHub: docs.github.com, "Validating webhook deliveries".
///
/// HMAC-SHA256 of the body, keyed with the secret's characters, in `X-Hub-Signature-256` after
/// `sha256=`. The SHA-1 header `X-Hub-Signature`, which GitHub still sends beside it, is not looked
/// at: whoever can drop a header must not choose the weaker digest. Nothing is timestamped, and the
/// delivery's id is not signed; GitHub's redelivery keeps the id.
pub(super) fn github() -> Rules {
    Rules {
        signed: &[Part::Body],
        signature: Signature {
            header: names(&["x-hub-signature-256"]),
            separator: None,
            encoding: Encoding::Hex,
        },
        methods: vec![Method {
            algorithm: SHA256,
            key: KeyForm::Text,
            prefix: Cow::Borrowed("sha256="),
        }],
        timestamp: None,
        id: Some(At::Header(names(&["x-github-delivery"]))),
        event_type: Some(At::Header(names(&["x-github-event"]))),
        user_agent: Some("GitHub-Hookshot/posthaste"),
    }
}

/// Stripe: docs.stripe.com/webhooks, "Verify webhook signatures manually".
///
/// `Stripe-Signature: t=…,v1=…[,v1=…]`: HMAC-SHA256 of `{t}.{body}`, keyed with the secret's
/// characters, its `whsec_` included. While a secret is rolled there is a `v1` for each; any will do.
/// `v0` is a test scheme of Stripe's and counts for nothing. Stripe's libraries refuse what is too
/// old; we also refuse what is too far ahead. Two different `t` are refused.
pub(super) fn stripe() -> Rules {
    Rules {
        signed: &[Part::Timestamp, Part::Text("."), Part::Body],
        signature: Signature {
            header: names(&["stripe-signature"]),
            separator: Some(','),
            encoding: Encoding::Hex,
        },
        methods: vec![Method {
            algorithm: SHA256,
            key: KeyForm::Text,
            prefix: Cow::Borrowed("v1="),
        }],
        timestamp: Some(At::Item("t=")),
        id: Some(At::Body(&["id"])),
        event_type: Some(At::Body(&["type"])),
        user_agent: Some("Stripe/1.0 (+https://stripe.com/docs/webhooks)"),
    }
}

/// Standard Webhooks: github.com/standard-webhooks, `spec/standard-webhooks.md`; Svix's own headers
/// after docs.svix.com, "Verifying webhooks manually".
///
/// `webhook-signature` is a list divided by spaces, `v1,<base64>` for HMAC-SHA256 and `v1a,<base64>`
/// for Ed25519, both over `{webhook-id}.{webhook-timestamp}.{body}`. Other versions are skipped. A
/// secret is base64, with or without `whsec_` before it; a public key begins with `whpk_`, and never
/// serves as the secret of a MAC. Where a `webhook-` header is absent, its `svix-` twin is taken.
pub(super) fn standard_webhooks() -> Rules {
    Rules {
        signed: &[
            Part::Id,
            Part::Text("."),
            Part::Timestamp,
            Part::Text("."),
            Part::Body,
        ],
        signature: Signature {
            header: names(&["webhook-signature", "svix-signature"]),
            separator: Some(' '),
            encoding: Encoding::Base64,
        },
        methods: vec![
            Method {
                algorithm: Algorithm::Ed25519,
                key: KeyForm::PublicBase64 { prefix: "whpk_" },
                prefix: Cow::Borrowed("v1a,"),
            },
            Method {
                algorithm: SHA256,
                key: KeyForm::Base64 {
                    prefixes: &["v1,whsec_", "whsec_"],
                },
                prefix: Cow::Borrowed("v1,"),
            },
        ],
        timestamp: Some(At::Header(names(&["webhook-timestamp", "svix-timestamp"]))),
        id: Some(At::Header(names(&["webhook-id", "svix-id"]))),
        event_type: Some(At::Body(&["type"])),
        user_agent: None,
    }
}

fn names(names: &[&'static str]) -> Vec<HeaderName> {
    names.iter().map(|name| HeaderName::from_static(name)).collect()
}
