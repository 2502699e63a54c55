//! Who may send.

use posthaste_tests::{
    Config, Endpoint, GITHUB_SECRET, Receiver, Request, STANDARD_SECRET, STRIPE_SECRET, Setup, TestApp, sign,
};

const BODY: &str = r#"{"id":"evt_1","type":"payment_intent.succeeded"}"#;

#[test]
fn whatever_is_wrong_with_a_signature_is_answered_with_401_and_the_same_words() {
    let receiver = Receiver::start();
    let app = app_with_each_scheme(&receiver);

    let refusals: Vec<(String, _)> = wrong_requests()
        .into_iter()
        .map(|(name, request)| (name, app.send(&request)))
        .collect();

    let (_, first) = &refusals[0];
    for (name, refusal) in &refusals {
        assert_eq!(refusal.status, 401, "{name}");
        assert_eq!(
            String::from_utf8_lossy(&refusal.body),
            String::from_utf8_lossy(&first.body),
            "{name} can be told from another cause"
        );
    }
    assert_eq!(
        app.json(&["events", "list"]),
        serde_json::json!([]),
        "a refused request was recorded"
    );
    assert_eq!(receiver.count(), 0);
}

#[test]
fn a_right_signature_of_each_scheme_is_accepted_up_to_the_tolerance() {
    let receiver = Receiver::start();
    let app = app_with_each_scheme(&receiver);
    let near_the_limit = 290;

    let right = [
        Request::github("github", "right-1", "push", BODY),
        Request::stripe("stripe", 0, r#"{"id":"evt_now"}"#),
        Request::stripe("stripe", -near_the_limit, r#"{"id":"evt_old"}"#),
        Request::stripe("stripe", near_the_limit, r#"{"id":"evt_early"}"#),
        Request::standard("standard", "msg_now", 0, BODY),
        Request::standard("standard", "msg_old", -near_the_limit, BODY),
        Request::standard("standard", "msg_early", near_the_limit, BODY),
    ];
    for request in &right {
        app.send(request).accepted();
    }
    app.until_finished();

    assert_eq!(receiver.count(), right.len());
}

#[test]
fn a_tolerance_of_the_source_counts_in_both_directions() {
    let receiver = Receiver::start();
    let config = Config::new()
        .source(
            "strict",
            &format!("scheme = \"stripe\"\nsecrets = [\"{STRIPE_SECRET}\"]\ntolerance = \"30s\""),
        )
        .endpoint(Endpoint::new("orders", &receiver.url("/hooks")))
        .route("strict", "orders");
    let app = TestApp::on(Setup::Own, config).start();

    app.send(&Request::stripe("strict", -20, r#"{"id":"evt_in"}"#))
        .accepted();
    let old = app.send(&Request::stripe("strict", -40, r#"{"id":"evt_old"}"#));
    let early = app.send(&Request::stripe("strict", 40, r#"{"id":"evt_early"}"#));

    assert_eq!((old.status, early.status), (401, 401));
}

#[test]
fn each_of_several_secrets_verifies_and_a_retired_one_does_not() {
    let receiver = Receiver::start();
    let config = Config::new()
        .source(
            "rotating",
            &format!("scheme = \"github\"\nsecrets = [\"the-next-one\", \"{GITHUB_SECRET}\"]"),
        )
        .endpoint(Endpoint::new("orders", &receiver.url("/hooks")))
        .route("rotating", "orders");
    let app = TestApp::on(Setup::Own, config).start();
    let signed_with = |secret: &str, id: &str| {
        Request::github("rotating", id, "push", BODY)
            .with("x-hub-signature-256", &sign::github(secret, BODY.as_bytes()))
    };

    app.send(&signed_with(GITHUB_SECRET, "rotate-1")).accepted();
    app.send(&signed_with("the-next-one", "rotate-2")).accepted();
    let retired = app.send(&signed_with("the-one-before", "rotate-3"));

    assert_eq!(retired.status, 401);
}

#[test]
fn one_right_signature_among_several_of_a_standard_webhook_is_enough() {
    let receiver = Receiver::start();
    let app = app_with_each_scheme(&receiver);
    let right = Request::standard("standard", "msg_several", 0, BODY);
    let signature = right
        .headers
        .iter()
        .find(|(name, _)| name == "webhook-signature")
        .map(|(_, value)| value.clone())
        .expect("it is signed");

    let several = format!("v1a,bm90IG91cnM= v1 v1,bm90IHRoaXMgb25l {signature}");
    app.send(&right.with("webhook-signature", &several)).accepted();
}

#[test]
fn a_generic_hmac_is_verified_as_it_is_spelt_out() {
    let receiver = Receiver::start();
    let secret = "it-s-a-generic-secret";
    let config = Config::new()
        .source(
            "hex",
            &format!(
                "secrets = [\"{secret}\"]\nscheme = {{ hmac = {{ header = \"X-Sig\", algorithm = \"sha1\", \
                 encoding = \"hex\", prefix = \"sha1=\", id_header = \"X-Id\", type_header = \"X-Type\" }} }}"
            ),
        )
        .source(
            "base64",
            &format!(
                "secrets = [\"{secret}\"]\nscheme = {{ hmac = {{ header = \"X-Sig\", algorithm = \"sha512\", \
                 encoding = \"base64\" }} }}"
            ),
        )
        .endpoint(Endpoint::new("orders", &receiver.url("/hooks")))
        .route_of("hex", "order.*", "orders")
        .route("base64", "orders");
    let app = TestApp::on(Setup::Own, config).start();
    let hex = |id: &str, prefix: &str| {
        Request::webhook("hex", BODY)
            .header(
                "x-sig",
                &format!("{prefix}{}", sign::sha1_hex(secret, BODY.as_bytes())),
            )
            .header("x-id", id)
            .header("x-type", "order.paid")
    };

    app.send(&hex("hmac-1", "sha1=")).accepted();
    let again = app.send(&hex("hmac-1", "sha1="));
    app.send(&hex("hmac-2", "sha1=")).accepted();
    let without_prefix = app.send(&hex("hmac-3", ""));
    let base64 = sign::sha512_base64(secret, BODY.as_bytes());
    app.send(&Request::webhook("base64", BODY).header("x-sig", &base64))
        .accepted();
    let other_body = app.send(&Request::webhook("base64", "{}").header("x-sig", &base64));
    app.until_finished();

    assert_eq!(again.text("status"), "duplicate");
    assert_eq!((without_prefix.status, other_body.status), (401, 401));
    assert_eq!(receiver.count(), 3);
    assert_eq!(
        receiver.received()[0].header("posthaste-event-type").as_deref(),
        Some("order.paid")
    );
}

fn app_with_each_scheme(receiver: &Receiver) -> TestApp {
    let config = Config::new()
        .github("github")
        .stripe("stripe")
        .standard("standard")
        .endpoint(Endpoint::new("orders", &receiver.url("/hooks")))
        .route("github", "orders")
        .route("stripe", "orders")
        .route("standard", "orders");
    TestApp::on(Setup::Own, config).start()
}

fn wrong_requests() -> Vec<(String, Request)> {
    let body = BODY.as_bytes();
    let past_the_limit = 310;
    let now = sign::now(0);
    let mut wrong = Vec::new();
    let mut add = |name: &str, request: Request| wrong.push((name.to_owned(), request));

    let github = Request::github("github", "wrong-1", "push", BODY);
    add("github: missing", github.clone().without("x-hub-signature-256"));
    add(
        "github: of another body",
        Request {
            body: b"{}".to_vec(),
            ..github.clone()
        },
    );
    for value in [
        "",
        "sha256",
        "sha256=",
        "sha256=zz",
        "sha256=00",
        "sha1=0000000000000000000000000000000000000000",
        "sha512=00",
        &sign::github("another secret", body),
        &sign::github("", body),
        &sign::github(GITHUB_SECRET, b""),
        &format!("{}00", sign::github(GITHUB_SECRET, body)),
        sign::github(GITHUB_SECRET, body).trim_start_matches("sha256="),
    ] {
        add(
            &format!("github: {value:?}"),
            github.clone().with("x-hub-signature-256", value),
        );
    }

    let stripe = Request::stripe("stripe", 0, BODY);
    add("stripe: missing", stripe.clone().without("stripe-signature"));
    add(
        "stripe: of another body",
        Request {
            body: b"{}".to_vec(),
            ..stripe.clone()
        },
    );
    add(
        "stripe: expired",
        Request::stripe("stripe", -past_the_limit, BODY),
    );
    add(
        "stripe: from the future",
        Request::stripe("stripe", past_the_limit, BODY),
    );
    let right = sign::stripe(STRIPE_SECRET, now, body);
    let mac = right.split("v1=").nth(1).expect("it has a signature").to_owned();
    for value in [
        "",
        "t=,v1=",
        "t=soon,v1=00",
        &format!("t={now}"),
        &format!("v1={mac}"),
        &format!("t={now},v0={mac}"),
        &format!("t={},v1={mac}", now + 1),
        "t=99999999999999999999,v1=00",
        "t=-1,v1=00",
        &sign::stripe("whsec_another_secret", now, body),
    ] {
        add(
            &format!("stripe: {value:?}"),
            stripe.clone().with("stripe-signature", value),
        );
    }

    let standard = Request::standard("standard", "msg_wrong", 0, BODY);
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        add(&format!("standard: no {name}"), standard.clone().without(name));
        add(
            &format!("standard: empty {name}"),
            standard.clone().with(name, ""),
        );
    }
    add(
        "standard: of another body",
        Request {
            body: b"{}".to_vec(),
            ..standard.clone()
        },
    );
    add(
        "standard: of another id",
        standard.clone().with("webhook-id", "msg_other"),
    );
    add(
        "standard: no number",
        standard.clone().with("webhook-timestamp", "soon"),
    );
    add(
        "standard: expired",
        Request::standard("standard", "msg_wrong", -past_the_limit, BODY),
    );
    add(
        "standard: from the future",
        Request::standard("standard", "msg_wrong", past_the_limit, BODY),
    );
    let right = sign::standard(STANDARD_SECRET, "msg_wrong", now, body);
    for value in ["v1", "v1,", "v1,!", "v2,AAAA", &right.replacen("v1,", "v2,", 1)] {
        add(
            &format!("standard: {value:?}"),
            standard.clone().with("webhook-signature", value),
        );
    }
    wrong
}
