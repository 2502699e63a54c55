use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use posthaste_outbound::{CAPTURE, CallError, Delivery};

use crate::receiver::{Next, Receiver, wait_for_close};
use crate::support::{NOW, TIMEOUT, TOKEN, deliver, delivery, endpoint, endpoints, printed, until};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn the_body_and_the_headers_given_arrive_as_they_are() {
    let receiver = Receiver::answering(OK);
    let body = Bytes::from_static(b"\xff\0 {\"a\": 1e2,\r\n\"a\":\"\\u0000\"}");
    let sent = Delivery {
        body: body.clone(),
        headers: HeaderMap::from_iter([
            (
                HeaderName::from_static("content-type"),
                HeaderValue::from_static("application/json"),
            ),
            (
                HeaderName::from_static("user-agent"),
                HeaderValue::from_static("GitHub-Hookshot/1"),
            ),
            (
                HeaderName::from_static("x-odd"),
                HeaderValue::from_bytes(b"caf\xc3\xa9").unwrap(),
            ),
        ]),
        ..delivery()
    };

    let endpoints = endpoints(endpoint(receiver.url("/hooks?a=b")));
    endpoints.deliver("orders", sent).await.unwrap().unwrap();

    let request = &receiver.seen()[0];
    assert_eq!(request.line, "POST /hooks?a=b HTTP/1.1");
    assert_eq!(request.body, body);
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("user-agent"), Some("GitHub-Hookshot/1"));
    assert_eq!(request.header("x-odd"), Some("café"));
    assert_eq!(
        request.header("content-length"),
        Some(body.len().to_string().as_str())
    );
    assert_eq!(request.header("accept-encoding"), None);
}

#[tokio::test]
async fn headers_that_would_contradict_the_body_or_the_signature_are_dropped() {
    let receiver = Receiver::answering(OK);
    let headers = [
        ("host", "elsewhere.example"),
        ("content-length", "1"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
        ("expect", "100-continue"),
        ("webhook-id", "theirs"),
        ("webhook-timestamp", "1"),
        ("webhook-signature", "v1,theirs"),
    ]
    .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let sent = Delivery {
        headers: HeaderMap::from_iter(headers),
        ..delivery()
    };

    let endpoints = endpoints(endpoint(receiver.url("/")));
    endpoints.deliver("orders", sent).await.unwrap().unwrap();

    let request = &receiver.seen()[0];
    let own_host = format!("127.0.0.1:{}", receiver.port());
    assert_eq!(request.header("host"), Some(own_host.as_str()));
    assert_eq!(request.header("content-length"), Some("13"));
    for name in ["transfer-encoding", "connection", "expect", "webhook-signature"] {
        assert_eq!(request.header(name), None, "{name}");
    }
    assert_eq!(request.header("webhook-id"), Some("evt_1"));
    assert_eq!(
        request.header("webhook-timestamp"),
        Some(NOW.to_string().as_str())
    );
}

#[tokio::test]
async fn user_and_password_of_the_url_are_sent_as_basic_authorization_only() {
    let receiver = Receiver::answering(OK);
    let url = format!("http://user:p%40ss@127.0.0.1:{}/hooks", receiver.port());

    deliver(&endpoints(endpoint(url))).await.unwrap();

    let request = &receiver.seen()[0];
    assert_eq!(request.line, "POST /hooks HTTP/1.1");
    // user:p@ss
    assert_eq!(request.header("authorization"), Some("Basic dXNlcjpwQHNz"));
}

#[tokio::test]
async fn calls_one_after_another_use_one_connection() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
    let endpoints = endpoints(endpoint(receiver.url("/")));

    for _ in 0..3 {
        deliver(&endpoints).await.unwrap();
    }

    assert!(receiver.seen().iter().all(|request| request.connection == 0));
}

#[tokio::test]
async fn a_connection_that_http_1_0_has_closed_is_not_used_again() {
    let receiver = Receiver::start(|stream, _| {
        stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nhi")?;
        Ok(Next::Close)
    });
    let endpoints = endpoints(endpoint(receiver.url("/")));

    deliver(&endpoints).await.unwrap();
    deliver(&endpoints).await.unwrap();

    let connections: Vec<_> = receiver.seen().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 1]);
}

#[tokio::test]
async fn a_body_at_the_limit_is_kept_whole_and_one_past_it_is_cut() {
    for (length, kept) in [(CAPTURE, CAPTURE), (CAPTURE + 1, CAPTURE)] {
        let receiver = Receiver::start(move |stream, _| {
            write!(stream, "HTTP/1.1 500 No\r\ncontent-length: {length}\r\n\r\n")?;
            stream.write_all(&vec![b'x'; length])?;
            Ok(Next::Keep)
        });

        let error = deliver(&endpoints(endpoint(receiver.url("/"))))
            .await
            .unwrap_err();

        assert!(
            matches!(&error, CallError::Status { response, .. } if response.len() == kept),
            "{error:?}"
        );
        assert!(!printed(&error).contains("xx"));
    }
}

#[tokio::test]
async fn a_body_that_trickles_or_breaks_off_does_not_undo_its_status() {
    let trickling = Receiver::start(|stream, _| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart")?;
        wait_for_close(stream, Duration::from_secs(30))
    });
    let broken = Receiver::start(|stream, _| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart")?;
        Ok(Next::Close)
    });

    for receiver in [trickling, broken] {
        let receipt = deliver(&endpoints(endpoint(receiver.url("/")))).await.unwrap();

        assert_eq!((receipt.status, &receipt.response[..]), (200, &b"part"[..]));
    }
}

#[tokio::test]
async fn a_redirect_names_the_host_it_points_to_and_nothing_else_of_it() {
    let receiver = Receiver::answering(
        "HTTP/1.1 301 Moved\r\nlocation: https://u:SECRETTOKEN@login.example/SECRETTOKEN?t=SECRETTOKEN\r\n\
         content-length: 0\r\n\r\n",
    );

    let error = deliver(&endpoints(endpoint(receiver.url("/"))))
        .await
        .unwrap_err();

    assert_eq!(error.to_string(), "answered 301, pointing to login.example");
    assert!(!printed(&error).contains(TOKEN));
}

#[tokio::test]
async fn a_hanging_call_ends_at_its_time_out_and_closes_its_connection() {
    let receiver = Receiver::hanging();
    let endpoints = endpoints(endpoint(receiver.url("/")));

    let error = deliver(&endpoints).await.unwrap_err();

    assert!(matches!(error, CallError::Timeout(limit) if limit == TIMEOUT));
    assert_eq!(error.to_string(), "no answer within 1s");
    until("the connection is closed", || receiver.open_connections() == 0).await;
}

#[tokio::test]
async fn a_refused_connection_is_told_from_a_name_that_does_not_exist_and_from_failed_tls() {
    let refused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let speaks_plain = format!("https://{}/{TOKEN}", plain.local_addr().unwrap());
    let _server = std::thread::spawn(move || {
        let (mut stream, _) = plain.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Speak HTTP\r\n\r\n").unwrap();
        wait_for_close(&mut stream, Duration::from_secs(30))
    });
    let ending = async |url: String| {
        let mut config = endpoint(url);
        config.timeout = Duration::from_secs(20);
        deliver(&endpoints(config)).await.unwrap_err()
    };

    let refused = ending(format!("http://{refused}/{TOKEN}")).await;
    let unknown = ending(format!("http://nobody.invalid/{TOKEN}")).await;
    let tls = ending(speaks_plain).await;

    assert!(matches!(refused, CallError::Connect(_)), "{refused:?}");
    assert!(matches!(unknown, CallError::Dns(_)), "{unknown:?}");
    assert!(matches!(tls, CallError::Tls(_)), "{tls:?}");
    for error in [refused, unknown, tls] {
        assert!(!printed(&error).contains(TOKEN), "{error:?}");
    }
}

#[tokio::test]
async fn an_unknown_endpoint_is_none() {
    let endpoints = endpoints(endpoint("http://127.0.0.1:1/"));

    assert!(endpoints.deliver("nobody", delivery()).await.is_none());
}
