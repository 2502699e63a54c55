use base64::Engine;
use bytes::Bytes;
use posthaste_outbound::Delivery;
use serde_json::Value;

use crate::receiver::Receiver;
use crate::support::{cases, delivery, endpoint, endpoints, json};

const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";

#[tokio::test]
async fn what_is_sent_carries_the_published_signatures() {
    let Some(cases) = cases() else { return };
    let vectors = json(cases.join("../vectors/signatures.json"));
    let published: Vec<&Value> = vectors.iter().filter(|vector| is_signed_by_one(vector)).collect();
    let ids = published.iter().map(|vector| vector["id"].as_str().unwrap());
    assert!(
        ids.clone().any(|id| id == "standard-webhooks-01"),
        "{:?}",
        ids.collect::<Vec<_>>()
    );

    for vector in published {
        let receiver = Receiver::answering(OK);
        let mut config = endpoint(receiver.url("/"));
        config.signing_secret = vector["secrets"][0].as_str().map(str::to_owned);
        let body = vector["body_base64"].as_str().unwrap();
        let sent = Delivery {
            id: header(vector, "webhook-id").to_owned(),
            timestamp: header(vector, "webhook-timestamp").parse().unwrap(),
            body: Bytes::from(base64::prelude::BASE64_STANDARD.decode(body).unwrap()),
            ..delivery()
        };

        endpoints(config).deliver("orders", sent).await.unwrap().unwrap();

        let request = &receiver.seen()[0];
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            assert_eq!(
                request.header(name),
                Some(header(vector, name)),
                "{}: {name}",
                vector["id"]
            );
        }
    }
}

#[tokio::test]
async fn without_a_secret_id_and_timestamp_are_sent_and_no_signature() {
    let receiver = Receiver::answering(OK);
    let endpoints = endpoints(endpoint(receiver.url("/")));

    endpoints.deliver("orders", delivery()).await.unwrap().unwrap();

    let request = &receiver.seen()[0];
    assert_eq!(request.header("webhook-id"), Some("evt_1"));
    assert_eq!(request.header("webhook-timestamp"), Some("784111777"));
    assert_eq!(request.header("webhook-signature"), None);
}

#[tokio::test]
async fn of_an_id_that_no_header_can_hold_the_rest_is_sent() {
    let receiver = Receiver::answering(OK);
    let endpoints = endpoints(endpoint(receiver.url("/")));
    let sent = Delivery {
        id: "evt\r\n_1\0".to_owned(),
        ..delivery()
    };

    endpoints.deliver("orders", sent).await.unwrap().unwrap();

    assert_eq!(receiver.seen()[0].header("webhook-id"), Some("evt_1"));
}

/// Whether the vector is a valid one by a single secret, so that signing must give the same.
fn is_signed_by_one(vector: &Value) -> bool {
    let text = |key: &str| vector[key].as_str().unwrap_or_default();
    text("provider") == "standard-webhooks"
        && text("expect") == "valid"
        && text("scheme").is_empty()
        && vector["secrets"]
            .as_array()
            .is_some_and(|secrets| secrets.len() == 1)
        && !header(vector, "webhook-signature").contains(' ')
}

fn header<'a>(vector: &'a Value, name: &str) -> &'a str {
    let headers = vector["headers"].as_array().unwrap();
    let found = headers.iter().find(|header| header[0] == name);
    found.map_or("", |header| header[1].as_str().unwrap())
}
