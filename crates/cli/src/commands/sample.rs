//! Realistic bodies for `posthaste send`, written for this project in each provider's documented shape.

use posthaste_ingress::Scheme;

use crate::failure::Failure;
use crate::nearest::nearest;

/// A type of event that there is a body for.
struct Sample {
    event_type: &'static str,
    body: &'static str,
}

const GITHUB: &[Sample] = &[
    Sample {
        event_type: "push",
        body: include_str!("../../payloads/github-push.json"),
    },
    Sample {
        event_type: "ping",
        body: include_str!("../../payloads/github-ping.json"),
    },
];
const STRIPE: &[Sample] = &[
    Sample {
        event_type: "payment_intent.succeeded",
        body: include_str!("../../payloads/stripe-payment_intent.succeeded.json"),
    },
    Sample {
        event_type: "invoice.paid",
        body: include_str!("../../payloads/stripe-invoice.paid.json"),
    },
];
const STANDARD_WEBHOOKS: &[Sample] = &[Sample {
    event_type: "user.created",
    body: include_str!("../../payloads/standard-webhooks-user.created.json"),
}];
/// For schemes that say nothing of the body.
const ANY: &str = include_str!("../../payloads/any.json");

/// Returns a body for an event of this type, with the id in it where the provider keeps it there.
///
/// # Errors
///
/// There is none for this type.
pub(crate) fn body(scheme: &Scheme, event_type: &str, id: &str) -> Result<Vec<u8>, Failure> {
    let samples = match scheme {
        Scheme::Github => GITHUB,
        Scheme::Stripe => STRIPE,
        Scheme::StandardWebhooks => STANDARD_WEBHOOKS,
        Scheme::Hmac(_) | Scheme::None => {
            return Ok(ANY
                .replace("{{id}}", &quoted(id))
                .replace("{{type}}", &quoted(event_type))
                .into());
        }
    };
    match samples.iter().find(|sample| sample.event_type == event_type) {
        Some(sample) => Ok(sample.body.replace("{{id}}", &quoted(id)).into()),
        None => {
            let known: Vec<&str> = samples.iter().map(|sample| sample.event_type).collect();
            let failure = Failure::usage(format!(
                "there is no built-in body for type {event_type:?}, only for: {}",
                known.join(", ")
            ));
            Err(match nearest(event_type, known) {
                Some(near) => failure.hint(format!("--type {near}")),
                None => failure.hint("--file BODY.json"),
            })
        }
    }
}

/// Returns a text as it stands between the quotes of JSON.
fn quoted(text: &str) -> String {
    let literal = serde_json::Value::from(text).to_string();
    literal[1..literal.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_body_is_json_in_the_shape_of_its_provider() {
        let read = |scheme: &Scheme, event_type| -> Value {
            serde_json::from_slice(&body(scheme, event_type, "evt_1").unwrap()).unwrap()
        };

        let push = read(&Scheme::Github, "push");
        for key in [
            "ref",
            "before",
            "after",
            "repository",
            "pusher",
            "sender",
            "commits",
            "head_commit",
        ] {
            assert!(!push[key].is_null(), "a push has no {key}");
        }
        assert!(read(&Scheme::Github, "ping")["zen"].is_string());
        assert_eq!(read(&Scheme::Stripe, "invoice.paid")["type"], "invoice.paid");
        let payment = read(&Scheme::Stripe, "payment_intent.succeeded");
        assert_eq!(
            (payment["id"].as_str(), payment["object"].as_str()),
            (Some("evt_1"), Some("event"))
        );
        assert_eq!(
            read(&Scheme::StandardWebhooks, "user.created")["type"],
            "user.created"
        );
        assert_eq!(read(&Scheme::None, "order.\"paid\"")["type"], "order.\"paid\"");
    }

    #[test]
    fn a_misspelt_type_names_the_nearest() {
        let failure = body(&Scheme::Github, "psuh", "1").unwrap_err();

        assert!(failure.report().ends_with("hint: --type push\n"));
    }
}
