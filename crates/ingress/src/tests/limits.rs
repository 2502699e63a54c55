use std::sync::atomic::Ordering;
use std::time::Duration;

use bytesize::ByteSize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::harness::{Request, TestServer, parse, read_one, read_to_end, until};
use crate::Config;

fn chunked(path: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("POST {path} HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n").into_bytes();
    for piece in body.chunks(3) {
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

async fn begin(server: &TestServer, path: &str, length: usize) -> TcpStream {
    let mut stream = server.connect().await;
    let head = format!("POST {path} HTTP/1.1\r\nhost: t\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_body_at_the_limit_is_accepted_and_one_byte_past_it_is_413() {
    let server = TestServer::start().await;
    let statuses = async |body: &[u8]| {
        let declared = server
            .send(&Request::new("POST /webhooks/small", body))
            .await
            .status;
        let counted = server.exchange(&chunked("/webhooks/small", body)).await[0].status;
        [declared, counted]
    };

    assert_eq!(statuses(b"12345678").await, [200, 200]);
    assert_eq!(statuses(b"123456789").await, [413, 413]);
    assert_eq!(server.rooms.events().len(), 1);
}

#[tokio::test]
async fn a_source_without_its_own_limit_has_that_of_the_server() {
    let server = TestServer::with(Config {
        max_body: ByteSize::b(4),
        ..Config::default()
    })
    .await;

    assert_eq!(
        server
            .send(&Request::new("POST /webhooks/open", b"1234"))
            .await
            .status,
        200
    );
    assert_eq!(
        server
            .send(&Request::new("POST /webhooks/open", b"12345"))
            .await
            .status,
        413
    );
    assert_eq!(
        server
            .send(&Request::new("POST /webhooks/small", b"12345"))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_declared_body_past_the_limit_is_413_before_any_of_it_is_sent() {
    let server = TestServer::start().await;
    let mut stream = begin(&server, "/webhooks/github", 25 * 1024 * 1024 + 1).await;

    let answer = read_one(&mut stream).await;

    assert_eq!((answer.status, answer.code().as_str()), (413, "body_too_large"));
    assert_eq!(answer.header("connection"), Some("close"));
}

#[tokio::test]
async fn a_client_that_sends_on_regardless_can_still_read_its_413() {
    let server = TestServer::start().await;
    let mut stream = begin(&server, "/webhooks/github", 30_000_000).await;

    // Far more than the buffers between us hold, so a reset would lose the answer.
    for _ in 0..300 {
        stream.write_all(&[b'a'; 100_000]).await.unwrap();
    }
    stream.shutdown().await.unwrap();

    assert_eq!(parse(&read_to_end(&mut stream).await)[0].status, 413);
}

#[tokio::test]
async fn a_body_of_25_mib_is_accepted_by_default() {
    let server = TestServer::start().await;
    let body = vec![b'a'; 25 * 1024 * 1024];

    assert_eq!(server.send(&Request::github("d-1", &body)).await.status, 200);
}

#[tokio::test]
async fn bodies_in_flight_fill_the_budget_to_its_last_byte() {
    let server = TestServer::with(Config {
        max_body_in_flight: ByteSize::b(10),
        ..Config::default()
    })
    .await;
    server.rooms.hold_accepts();
    let mut held = server.connect().await;
    held.write_all(&Request::new("POST /webhooks/open", b"123456").bytes())
        .await
        .unwrap();
    let mut beside = server.connect().await;
    beside
        .write_all(&chunked("/webhooks/open", b"abcd"))
        .await
        .unwrap();
    until("both bodies are held", || {
        server.rooms.begun.load(Ordering::SeqCst) == 2
    })
    .await;

    let declared = server.send(&Request::new("POST /webhooks/open", b"1")).await;
    let counted = &server.exchange(&chunked("/webhooks/open", b"1")).await[0];
    assert_eq!((declared.status, declared.code().as_str()), (503, "no_room"));
    assert_eq!(declared.header("retry-after"), Some("1"));
    assert_eq!(counted.status, 503);

    server.rooms.gate.add_permits(1_000);
    assert_eq!(read_one(&mut held).await.status, 200);
    assert_eq!(read_one(&mut beside).await.status, 200);
    assert_eq!(
        server
            .send(&Request::new("POST /webhooks/open", b"1234567890"))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_body_that_could_never_fit_in_flight_is_413() {
    let server = TestServer::with(Config {
        max_body_in_flight: ByteSize::b(10),
        ..Config::default()
    })
    .await;

    assert_eq!(
        server
            .send(&Request::new("POST /webhooks/open", b"12345678901"))
            .await
            .status,
        413
    );
}

#[tokio::test]
async fn a_body_that_is_given_up_makes_room_again() {
    let server = TestServer::with(Config {
        max_body_in_flight: ByteSize::b(10),
        ..Config::default()
    })
    .await;
    let mut stalled = begin(&server, "/webhooks/open", 10).await;
    stalled.write_all(b"123456789").await.unwrap();
    let probe = Request::new("POST /webhooks/open", b"12");
    server.send_until(503, &probe).await;

    drop(stalled);

    server.send_until(200, &probe).await;
}

#[tokio::test]
async fn a_body_that_is_only_declared_keeps_nobody_out() {
    let server = TestServer::with(Config {
        max_body_in_flight: ByteSize::b(10),
        ..Config::default()
    })
    .await;
    let mut stalled = server.connect().await;
    stalled
        .write_all(
            b"POST /webhooks/open HTTP/1.1\r\nhost: t\r\ncontent-length: 10\r\nexpect: 100-continue\r\n\r\n",
        )
        .await
        .unwrap();
    // The server asks for the body once it has judged what is declared.
    let mut asked = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    stalled.read_exact(&mut asked).await.unwrap();
    let whole = Request::new("POST /webhooks/open", b"1234567890");

    assert_eq!(server.send(&whole).await.status, 200);

    stalled.write_all(b"1234567890").await.unwrap();
    assert_eq!(read_one(&mut stalled).await.status, 200);
}

#[tokio::test]
async fn headers_at_the_limit_are_taken_and_one_byte_past_it_is_431() {
    let limit = 1000;
    let server = TestServer::with(Config {
        max_headers: ByteSize::b(limit),
        ..Config::default()
    })
    .await;
    let request =
        |padding: usize| Request::new("POST /webhooks/open", b"").header("x-pad", &"a".repeat(padding));
    let head = request(0).bytes().len() - "POST /webhooks/open HTTP/1.1\r\n\r\n".len();
    let padding = usize::try_from(limit).unwrap() - head;

    let at = server.send(&request(padding)).await;
    let past = server.send(&request(padding + 1)).await;

    assert_eq!(at.status, 200);
    assert_eq!((past.status, past.code().as_str()), (431, "headers_too_large"));
    assert!(past.header("x-request-id").is_some());
}

#[tokio::test]
async fn headers_far_past_the_limit_are_431_before_they_are_read_to_the_end() {
    let server = TestServer::start().await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"POST /webhooks/open HTTP/1.1\r\nx-endless: ")
        .await
        .unwrap();
    let (mut reading, mut writing) = stream.split();
    let endless = async { while writing.write_all(&[b'a'; 4096]).await.is_ok() {} };
    let answer = async {
        let mut start = [0; 12];
        tokio::io::AsyncReadExt::read_exact(&mut reading, &mut start)
            .await
            .unwrap();
        start
    };

    let start = tokio::select! {
        start = answer => start,
        () = endless => panic!("the connection was reset before the answer"),
        () = tokio::time::sleep(Duration::from_secs(20)) => panic!("no answer"),
    };

    assert_eq!(&start, b"HTTP/1.1 431");
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_not_accepted() {
    let server = TestServer::start().await;
    for mut bytes in [
        Request::new("POST /webhooks/open", b"abc").bytes(),
        chunked("/webhooks/open", b"abc"),
    ] {
        bytes.pop();
        let answers = server.exchange(&bytes).await;

        assert!(answers.iter().all(|answer| answer.status == 400), "{answers:?}");
    }
    assert_eq!(server.rooms.begun.load(Ordering::SeqCst), 0);
}
