//! Bounds: at the limit it works, past it there is a clear answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use posthaste_tests::{
    Config, Endpoint, GITHUB_SECRET, LONG, Receiver, Request, Response, Setup, TestApp, sign, until,
};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

#[test]
fn a_body_at_the_limit_of_its_source_is_accepted_and_one_byte_more_is_413_chunked_or_not() {
    let receiver = Receiver::start();
    let config = Config::new()
        .source(
            "small",
            &format!("scheme = \"github\"\nsecrets = [\"{GITHUB_SECRET}\"]\nmax_body = \"64KiB\""),
        )
        .endpoint(Endpoint::new("orders", &receiver.url("/hooks")))
        .route("small", "orders");
    let app = TestApp::on(Setup::Own, config).start();
    let of = |id: &str, size: usize| Request::github("small", id, "push", vec![b'x'; size]);

    app.send(&of("at-1", 64 * KIB)).accepted();
    app.send(&of("at-2", 64 * KIB).chunked()).accepted();
    let past =
        [of("past-1", 64 * KIB + 1), of("past-2", 64 * KIB + 1).chunked()].map(|request| app.send(&request));
    app.until_finished();

    for answer in past {
        assert_eq!(answer.status, 413);
        assert!(!answer.text("code").is_empty());
    }
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    assert!(
        received
            .iter()
            .all(|request| request.body == vec![b'x'; 64 * KIB])
    );
}

#[test]
fn a_body_of_25_mib_as_github_sends_it_is_delivered_and_one_byte_more_is_413() {
    let receiver = Receiver::start();
    let app = TestApp::on(Setup::Own, Config::github_to(&receiver.url("/hooks"))).start();
    let body: Vec<u8> = (0..25 * MIB)
        .map(|position| b'a' + (position % 23) as u8)
        .collect();

    app.send(&Request::github("github", "large-1", "push", body.clone()))
        .accepted();
    let past = app.send(&Request::github(
        "github",
        "large-2",
        "push",
        [body.as_slice(), b"x"].concat(),
    ));
    app.until_finished();

    assert_eq!(past.status, 413);
    let received = receiver.received();
    assert_eq!(received.len(), 1);
    assert_eq!(sign::digest(&received[0].body), sign::digest(&body));
}

#[test]
fn a_body_declared_too_large_is_refused_before_it_is_sent() {
    let receiver = Receiver::start();
    let app = TestApp::on(Setup::Own, Config::github_to(&receiver.url("/hooks"))).start();
    let head = Request::github("github", "declared-1", "push", "")
        .header("content-length", "1000000000000")
        .head();

    let mut stream = connect(&app);
    stream.write_all(head.as_bytes()).expect("it reads");

    assert_eq!(Response::read(&mut stream).expect("it answers").status, 413);
}

#[test]
fn headers_within_the_limit_are_accepted_and_beyond_it_431() {
    let receiver = Receiver::start();
    let app = TestApp::on(Setup::Own, Config::github_to(&receiver.url("/hooks"))).start();
    let with = |id: &str, size: usize| {
        Request::github("github", id, "push", "{}").header("x-padding", &"x".repeat(size))
    };

    app.send(&with("headers-in", 30 * KIB)).accepted();
    let beyond = app.send(&with("headers-out", 33 * KIB));
    let far_beyond = app.send(&with("headers-far-out", 300 * KIB));
    app.until_finished();

    assert_eq!((beyond.status, far_beyond.status), (431, 431));
    assert_eq!(receiver.count(), 1);
}

#[test]
fn more_body_under_way_than_all_requests_may_have_is_503_until_there_is_room() {
    let receiver = Receiver::start();
    let config = Config::github_to(&receiver.url("/hooks"))
        .set("http.max_body", "\"1MiB\"")
        .set("http.max_body_in_flight", "\"1MiB\"");
    let app = TestApp::on(Setup::Own, config).start();
    let first =
        Request::github("github", "flight-1", "push", vec![b'x'; MIB]).header("expect", "100-continue");
    let second = Request::github("github", "flight-2", "push", vec![b'y'; 512 * KIB]);

    let mut stream = connect(&app);
    stream.write_all(first.head().as_bytes()).expect("it reads");
    // The server asks for the body once it has judged what is declared.
    let mut asked = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut asked).expect("it asks for the body");
    assert_eq!(String::from_utf8_lossy(&asked), "HTTP/1.1 100 Continue\r\n\r\n");
    let declared_only = app.send(&Request::github(
        "github",
        "flight-0",
        "push",
        vec![b'z'; 512 * KIB],
    ));
    stream.write_all(&first.body[..768 * KIB]).expect("it reads");
    // Asks with a body that is only declared, which takes no room from the one under way.
    let head = Request::github("github", "flight-2", "push", vec![b'y'; 512 * KIB])
        .header("expect", "100-continue")
        .head();
    until(LONG, "the body under way has taken the room", || {
        let mut asking = connect(&app);
        asking.write_all(head.as_bytes()).expect("it reads");
        let mut status = [0; b"HTTP/1.1 503".len()];
        asking.read_exact(&mut status).expect("it answers");
        status == *b"HTTP/1.1 503"
    });
    let refused = app.send(&second);
    stream.write_all(&first.body[768 * KIB..]).expect("it reads");
    Response::read(&mut stream).expect("it answers").accepted();
    let in_the_end = app.send(&second);
    app.until_finished();

    assert_eq!(
        declared_only.status, 200,
        "what is only declared keeps others out: {declared_only:?}"
    );
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(in_the_end.status, 200, "{in_the_end:?}");
    assert!(
        receiver
            .received()
            .iter()
            .any(|request| request.body == first.body)
    );
}

#[test]
fn a_client_that_stalls_is_cut_off_and_another_is_not_kept_waiting() {
    let receiver = Receiver::start();
    let config = Config::github_to(&receiver.url("/hooks")).set("http.read_timeout", "\"1s\"");
    let app = TestApp::on(Setup::Own, config).start();
    let whole = Request::github("github", "slow-1", "push", vec![b'x'; 1000]);
    let head = whole.head();

    let began = Instant::now();
    let mut stalled: Vec<TcpStream> = ["", &head[..40], &head]
        .iter()
        .map(|part| {
            let mut stream = connect(&app);
            stream.write_all(part.as_bytes()).expect("it reads");
            stream
        })
        .collect();
    app.send(&Request::github("github", "quick-1", "push", "{}"))
        .accepted();
    for stream in &mut stalled {
        let mut answer = Vec::new();
        // A reset is an end, too.
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        assert!(!text.starts_with("HTTP/1.1 200"), "{text}");
    }

    let took = began.elapsed();
    assert!(took >= Duration::from_millis(900), "cut off after {took:?}");
    assert!(took < Duration::from_secs(20), "cut off only after {took:?}");
}

fn connect(app: &TestApp) -> TcpStream {
    let stream = TcpStream::connect(app.address()).expect("it listens");
    stream
        .set_read_timeout(Some(LONG))
        .expect("a time-out can be set");
    stream
}
