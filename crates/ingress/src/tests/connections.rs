use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use super::harness::{PATIENCE, Request, TestServer, parse, read_one, read_to_end, short, until};

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let server = TestServer::with(short(100)).await;
    let mut stream = server.connect().await;

    assert_eq!(read_to_end(&mut stream).await, b"");
}

#[tokio::test]
async fn a_connection_that_falls_silent_after_an_answer_is_closed() {
    let server = TestServer::with(short(100)).await;
    let mut stream = server.connect().await;
    stream
        .write_all(&Request::github("d-1", b"{}").bytes())
        .await
        .unwrap();

    assert_eq!(parse(&read_to_end(&mut stream).await)[0].status, 200);
}

#[tokio::test]
async fn headers_that_trickle_in_are_cut_however_steady_they_are() {
    let server = TestServer::with(short(200)).await;
    let mut stream = server.connect().await;
    let began = Instant::now();

    let trickle = b"POST /webhooks/open HTTP/1.1\r\n"
        .iter()
        .chain(std::iter::repeat(&b'a'));
    for byte in trickle {
        if stream.write_all(&[*byte]).await.is_err() {
            break;
        }
        sleep(Duration::from_millis(20)).await;
        assert!(began.elapsed() < PATIENCE, "never cut");
    }
}

#[tokio::test]
async fn a_body_that_trickles_in_is_cut_however_steady_it_is() {
    let server = TestServer::with(short(200)).await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"POST /webhooks/open HTTP/1.1\r\nhost: t\r\ncontent-length: 1000000\r\n\r\n")
        .await
        .unwrap();
    let (mut reading, mut writing) = stream.split();
    let trickle = async {
        while writing.write_all(b"a").await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let answer = async {
        let mut bytes = [0; 12];
        reading.read_exact(&mut bytes).await.unwrap();
        bytes
    };

    let start = tokio::select! {
        bytes = answer => bytes,
        () = trickle => panic!("reset before the answer"),
        () = sleep(PATIENCE) => panic!("never cut"),
    };

    assert_eq!(&start, b"HTTP/1.1 408");
    assert_eq!(server.rooms.events().len(), 0);
}

#[tokio::test]
async fn a_client_that_reads_no_answer_is_cut() {
    let server = TestServer::with(short(200)).await;
    let mut stream = server.connect().await;
    let request = Request::new("GET /healthz", b"").bytes().repeat(1000);

    let flood = async { while stream.write_all(&request).await.is_ok() {} };

    timeout(PATIENCE, flood).await.expect("never cut");
}

#[tokio::test]
async fn an_open_connection_serves_one_request_after_another() {
    let server = TestServer::start().await;
    let mut stream = server.connect().await;
    for id in ["d-1", "d-2"] {
        stream
            .write_all(&Request::github(id, b"{}").bytes())
            .await
            .unwrap();
        assert_eq!(read_one(&mut stream).await.status, 200);
    }
    assert_eq!(server.rooms.events().len(), 2);
}

#[tokio::test]
async fn a_stop_finishes_the_request_under_way_and_takes_no_other() {
    let server = TestServer::start().await;
    server.rooms.hold_accepts();
    let mut idle = server.connect().await;
    idle.write_all(&Request::new("GET /healthz", b"").bytes())
        .await
        .unwrap();
    assert_eq!(read_one(&mut idle).await.status, 200);
    let mut silent = server.connect().await;
    let mut busy = server.connect().await;
    busy.write_all(&Request::github("d-1", b"{}").bytes())
        .await
        .unwrap();
    until("the first is under way", || {
        server.rooms.begun.load(Ordering::SeqCst) == 1
    })
    .await;
    let mut partial = server.connect().await;
    let request = Request::github("d-2", b"{}")
        .header("expect", "100-continue")
        .bytes();
    partial.write_all(&request[..request.len() - 2]).await.unwrap();
    let mut interim = [0; 25];
    partial.read_exact(&mut interim).await.unwrap();

    server.soft.cancel();

    assert_eq!(read_to_end(&mut idle).await, b"");
    assert_eq!(read_to_end(&mut silent).await, b"");
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err());
    partial.write_all(&request[request.len() - 2..]).await.unwrap();
    server.rooms.gate.add_permits(2);
    assert_eq!(parse(&read_to_end(&mut busy).await)[0].status, 200);
    assert_eq!(parse(&read_to_end(&mut partial).await)[0].status, 200);
    until("both are pushed", || {
        server.rooms.pushed.lock().unwrap().len() == 2
    })
    .await;
    server.ended().await;
}

#[tokio::test]
async fn a_hard_stop_waits_for_nobody() {
    let server = TestServer::start().await;
    server.rooms.hold_accepts();
    let mut busy = server.connect().await;
    busy.write_all(&Request::github("d-1", b"{}").bytes())
        .await
        .unwrap();
    until("it is under way", || {
        server.rooms.begun.load(Ordering::SeqCst) == 1
    })
    .await;
    server.soft.cancel();

    server.hard.cancel();

    server.ended().await;
    let mut rest = Vec::new();
    // Closed or reset: either way without an answer.
    let _ = busy.read_to_end(&mut rest).await;
    assert_eq!(rest, b"");
}
