//! Every answer of the list of scenarios, each ending as the list expects.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use posthaste_outbound::{CAPTURE, CallError, Receipt};

use crate::receiver::{Next, Receiver, wait_for_close};
use crate::support::{TIMEOUT, TOKEN, cases, deliver, endpoint, endpoints, json, printed, until};

type Answer = Box<dyn Fn(&mut TcpStream, usize) -> io::Result<Next> + Send + Sync>;
type Ending = Result<Receipt, CallError>;

/// What a scenario sends, and how the call must end.
struct Row {
    answer: Answer,
    ends: fn(&Ending) -> bool,
}

#[tokio::test]
async fn every_scenario_ends_as_expected_in_time_and_leaves_no_connection() {
    let Some(cases) = cases() else { return };
    let listed = json(cases.join("http/outbound_scenarios.json"));
    assert!(!listed.is_empty());
    let mut wrong = Vec::new();

    for case in &listed {
        let name = case["scenario"].as_str().unwrap();
        match row(name) {
            Some(row) => wrong.extend(run(row).await.err().map(|why| format!("{name}: {why}"))),
            None => wrong.push(format!(
                "{name}: has no row here; the list expects {}",
                case["expect"]
            )),
        }
    }

    assert!(wrong.is_empty(), "{wrong:#?}");
}

async fn run(row: Row) -> Result<(), String> {
    let receiver = Receiver::start(row.answer);
    let url = format!(
        "http://user:{TOKEN}@127.0.0.1:{}/{TOKEN}?key={TOKEN}",
        receiver.port()
    );
    let endpoints = endpoints(endpoint(url));

    let began = Instant::now();
    let ending = deliver(&endpoints).await;
    let took = began.elapsed();

    drop(endpoints);
    until("the connections are closed", || receiver.open_connections() == 0).await;
    if took > TIMEOUT + Duration::from_secs(1) {
        return Err(format!("took {took:?}"));
    }
    if !(row.ends)(&ending) {
        return Err(format!("ended as {ending:?}"));
    }
    if receiver.seen().len() != 1 {
        return Err(format!("sent {} requests", receiver.seen().len()));
    }
    match &ending {
        Err(error) if printed(error).contains(TOKEN) => Err("an error prints the token".to_owned()),
        _ => Ok(()),
    }
}

fn row(name: &str) -> Option<Row> {
    if let Some(code) = name.strip_prefix("status_") {
        return Some(status(code));
    }
    Some(match name {
        "ok" => text(
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            |ending| matches!(ending, Ok(receipt) if receipt.status == 200 && receipt.response == "ok"),
        ),
        "accepted" => text("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", |ending| {
            delivered(ending, 202)
        }),
        "no_content" => silent_after("HTTP/1.1 204 No Content\r\n\r\n", |ending| delivered(ending, 204)),

        "redirect_307" => redirect("307", Some("/ok"), |ending| points_to(ending, Some("127.0.0.1"))),
        "redirect_loop" => redirect("302", Some(""), |ending| points_to(ending, Some("127.0.0.1"))),
        "redirect_ssrf" => redirect(
            "302",
            Some("http://user:SECRETTOKEN@169.254.169.254/SECRETTOKEN?key=SECRETTOKEN"),
            |ending| points_to(ending, Some("169.254.169.254")),
        ),
        "redirect_file" => redirect("302", Some("file:///etc/passwd"), |ending| {
            points_to(ending, Some("file:"))
        }),
        "redirect_no_location" => redirect("302", None, |ending| points_to(ending, None)),

        "ra_date" => retry_after("503", "Sun, 06 Nov 1994 08:49:40 GMT", |ending| {
            // By the moment of the answer, which may be a second into the call.
            matches!(asked_for(ending), Some(wait) if (2..=3).contains(&wait.as_secs()))
        }),
        "ra_negative" => retry_after("429", "-5", |ending| asked_for(ending).is_none()),
        "ra_garbage" => retry_after("429", "soon", |ending| asked_for(ending).is_none()),

        "flap" => Row {
            answer: Box::new(|stream, nth| {
                let status = if nth % 2 == 1 { "500" } else { "200" };
                write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")?;
                Ok(Next::Keep)
            }),
            ends: |ending| answered(ending, 500),
        },

        "slow_headers" => Row {
            answer: Box::new(|stream, _| wait_for_close(stream, Duration::from_secs(30))),
            ends: timed_out,
        },
        "never" => silent_after("", timed_out),
        "reset_after" => Row {
            answer: Box::new(|stream, _| {
                socket2::SockRef::from(&*stream).set_linger(Some(Duration::ZERO))?;
                Ok(Next::Close)
            }),
            ends: broke,
        },
        "close_mid_headers" => closing("HTTP/1.1 200 OK\r\ncontent-le", broke),

        "endless_body" => endless("HTTP/1.1 200 OK\r\n\r\n", &[b'x'; 8192], |ending| {
            delivered(ending, 200) && kept(ending) == CAPTURE
        }),
        "many_1xx" => Row {
            answer: Box::new(|stream, _| {
                let burst = b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
                loop {
                    stream.write_all(&burst)?;
                    // At full speed hyper, built without optimization, parses for seconds before it
                    // yields to the timer; built for release it yields within milliseconds.
                    thread::sleep(Duration::from_millis(1));
                }
            }),
            ends: timed_out,
        },
        "gzip_bomb" => gzip_bomb(),
        "gzip_broken" => text(
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 8\r\n\r\nno gzip!",
            |ending| matches!(ending, Ok(receipt) if receipt.response == "no gzip!"),
        ),
        "body_secret" => Row {
            answer: Box::new(|stream, _| {
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 102400\r\n\r\n")?;
                stream.write_all(&b"<script>alert(1)</script>".repeat(4096))?;
                Ok(Next::Keep)
            }),
            ends: |ending| delivered(ending, 200) && kept(ending) == CAPTURE,
        },

        "chunk_ok" => text(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
             5;name=value\r\nhello\r\n6\r\n world\r\n0\r\nx-sum: 1\r\n\r\n",
            |ending| matches!(ending, Ok(receipt) if receipt.response == "hello world"),
        ),
        "http10" => closing(
            "HTTP/1.0 200 OK\r\n\r\nhi",
            |ending| matches!(ending, Ok(receipt) if receipt.status == 200 && receipt.response == "hi"),
        ),
        "http09" => closing("<html>hello</html>", broke),
        "garbage" => closing("\u{1}\u{7f}\u{80}\u{2}!#$%&\u{0}\r\n\r\n", broke),
        "ssh_banner" => silent_after("SSH-2.0-OpenSSH_9.2\r\n", broke),
        "lf_only" => silent_after("HTTP/1.1 200 OK\ncontent-length: 2\n\nok", delivered_or_broke),
        "many_headers" => Row {
            answer: Box::new(|stream, _| {
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n")?;
                for number in 0..20_000 {
                    write!(stream, "x-header-{number}: {number}\r\n")?;
                }
                write!(stream, "\r\n")?;
                Ok(Next::Keep)
            }),
            ends: broke,
        },
        "header_nul" => silent_after("HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n", broke),
        "cl_te" => silent_after(
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            |ending| broke(ending) || matches!(ending, Ok(receipt) if receipt.response == "hello"),
        ),
        "switching" => silent_after(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
            |ending| answered(ending, 101) || broke(ending),
        ),
        _ => return None,
    })
}

/// Sends a whole answer and keeps the connection.
fn text(answer: &'static str, ends: fn(&Ending) -> bool) -> Row {
    Row {
        answer: Box::new(move |stream, _| {
            stream.write_all(answer.as_bytes())?;
            Ok(Next::Keep)
        }),
        ends,
    }
}

/// Sends something, then nothing, with the connection open.
fn silent_after(answer: &'static str, ends: fn(&Ending) -> bool) -> Row {
    Row {
        answer: Box::new(move |stream, _| {
            stream.write_all(answer.as_bytes())?;
            wait_for_close(stream, Duration::from_secs(30))
        }),
        ends,
    }
}

/// Sends something and closes.
fn closing(answer: &'static str, ends: fn(&Ending) -> bool) -> Row {
    Row {
        answer: Box::new(move |stream, _| {
            stream.write_all(answer.as_bytes())?;
            stream.shutdown(Shutdown::Write)?;
            Ok(Next::Close)
        }),
        ends,
    }
}

/// Sends the same again and again, until the client goes away.
fn endless(head: &'static str, again: &'static [u8], ends: fn(&Ending) -> bool) -> Row {
    Row {
        answer: Box::new(move |stream, _| {
            stream.write_all(head.as_bytes())?;
            loop {
                stream.write_all(again)?;
            }
        }),
        ends,
    }
}

fn redirect(status: &'static str, location: Option<&'static str>, ends: fn(&Ending) -> bool) -> Row {
    let location = location.map_or_else(String::new, |to| format!("location: {to}\r\n"));
    Row {
        answer: Box::new(move |stream, _| {
            write!(
                stream,
                "HTTP/1.1 {status} Moved\r\n{location}content-length: 0\r\n\r\n"
            )?;
            Ok(Next::Keep)
        }),
        ends,
    }
}

fn retry_after(status: &'static str, value: &'static str, ends: fn(&Ending) -> bool) -> Row {
    Row {
        answer: Box::new(move |stream, _| {
            write!(
                stream,
                "HTTP/1.1 {status} Later\r\nretry-after: {value}\r\ncontent-length: 0\r\n\r\n"
            )?;
            Ok(Next::Keep)
        }),
        ends,
    }
}

fn status(code: &str) -> Row {
    let head = format!("HTTP/1.1 {code} X\r\ncontent-length: 0\r\n\r\n");
    let ends: fn(&Ending) -> bool = match code {
        "299" => |ending| delivered(ending, 299),
        "99" | "1000" => broke,
        "403" => |ending| answered(ending, 403),
        "405" => |ending| answered(ending, 405),
        "409" => |ending| answered(ending, 409),
        "410" => |ending| answered(ending, 410),
        "422" => |ending| answered(ending, 422),
        "451" => |ending| answered(ending, 451),
        "501" => |ending| answered(ending, 501),
        "502" => |ending| answered(ending, 502),
        "503" => |ending| answered(ending, 503),
        "504" => |ending| answered(ending, 504),
        "507" => |ending| answered(ending, 507),
        "666" => |ending| answered(ending, 666),
        _ => |_| false,
    };
    Row {
        answer: Box::new(move |stream, _| {
            stream.write_all(head.as_bytes())?;
            Ok(Next::Keep)
        }),
        ends,
    }
}

/// A gzip stream of 256 MiB of zeros in less than 2 MB: one literal, then "258 times the byte before".
fn gzip_bomb() -> Row {
    let mut bits = vec![true, true, false];
    let mut symbol = |code: u32, length: u32| {
        bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
    };
    symbol(0b0011_0000, 8);
    for _ in 0..(256 << 20) / 258 {
        symbol(0b1100_0101, 8);
        symbol(0, 5);
    }
    symbol(0, 7);
    let mut body = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    body.extend(bits.chunks(8).map(|byte| {
        let set = byte.iter().enumerate().filter(|(_, bit)| **bit);
        set.fold(0, |byte, (place, _)| byte | 1 << place)
    }));

    Row {
        answer: Box::new(move |stream, _| {
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {length}\r\n\r\n"
            )?;
            stream.write_all(&body)?;
            Ok(Next::Keep)
        }),
        ends: |ending| {
            matches!(ending, Ok(receipt)
                if receipt.response.starts_with(&[0x1f, 0x8b]) && receipt.response.len() == CAPTURE)
        },
    }
}

fn delivered(ending: &Ending, expected: u16) -> bool {
    matches!(ending, Ok(receipt) if receipt.status == expected)
}

fn answered(ending: &Ending, expected: u16) -> bool {
    matches!(ending, Err(CallError::Status { status, .. }) if *status == expected)
}

fn broke(ending: &Ending) -> bool {
    matches!(ending, Err(CallError::Protocol(_)))
}

fn delivered_or_broke(ending: &Ending) -> bool {
    delivered(ending, 200) || broke(ending)
}

fn timed_out(ending: &Ending) -> bool {
    matches!(ending, Err(CallError::Timeout(limit)) if *limit == TIMEOUT)
}

fn kept(ending: &Ending) -> usize {
    ending.as_ref().map_or(0, |receipt| receipt.response.len())
}

fn asked_for(ending: &Ending) -> Option<Duration> {
    match ending {
        Err(CallError::Status { retry_after, .. }) => *retry_after,
        _ => panic!("{ending:?}"),
    }
}

fn points_to(ending: &Ending, expected: Option<&str>) -> bool {
    matches!(ending, Err(CallError::Status { status: 300..400, location, .. }) if location.as_deref() == expected)
}
