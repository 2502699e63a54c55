use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use posthaste_outbound::{BreakerConfig, BreakerState, CallError, EndpointConfig, Endpoints};

use crate::receiver::{Next, Receiver, wait_for_close};
use crate::support::{deliver, endpoint, endpoints, until};

const BREAKER: BreakerConfig = BreakerConfig {
    failure_rate: 0.5,
    min_calls: 4,
    window: Duration::from_secs(30),
    cooldown: Duration::from_millis(500),
};

fn guarded(url: String) -> EndpointConfig {
    EndpointConfig {
        breaker: BREAKER,
        ..endpoint(url)
    }
}

fn state(endpoints: &Endpoints) -> BreakerState {
    endpoints.breakers()[0].1
}

fn is_open(endpoints: &Endpoints) -> bool {
    matches!(state(endpoints), BreakerState::Open { .. })
}

/// Answers 500 as long as it is sick, and 200 when it is well.
fn moody() -> (Receiver, Arc<AtomicBool>) {
    let well = Arc::new(AtomicBool::new(false));
    let mood = Arc::clone(&well);
    let receiver = Receiver::start(move |stream, _| {
        let status = if mood.load(Ordering::SeqCst) { 200 } else { 500 };
        write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")?;
        Ok(Next::Keep)
    });
    (receiver, well)
}

#[tokio::test]
async fn a_sick_endpoint_is_left_alone_until_a_probe_finds_it_well() {
    let (receiver, well) = moody();
    let endpoints = endpoints(guarded(receiver.url("/")));

    for _ in 0..BREAKER.min_calls {
        assert_eq!(state(&endpoints), BreakerState::Closed);
        deliver(&endpoints).await.unwrap_err();
    }
    let rejected = deliver(&endpoints).await.unwrap_err();
    assert!(
        matches!(rejected, CallError::CircuitOpen { retry_in } if retry_in <= BREAKER.cooldown),
        "{rejected:?}"
    );
    assert_eq!(receiver.seen().len(), BREAKER.min_calls as usize);

    well.store(true, Ordering::SeqCst);
    until("half-open", || state(&endpoints) == BreakerState::HalfOpen).await;
    deliver(&endpoints).await.unwrap();
    assert_eq!(state(&endpoints), BreakerState::Closed);
    deliver(&endpoints).await.unwrap();
}

#[tokio::test]
async fn of_500_who_wait_for_a_hanging_endpoint_one_probes_it() {
    let receiver = Receiver::start(|stream, nth| {
        if nth > BREAKER.min_calls as usize {
            return wait_for_close(stream, Duration::from_secs(30));
        }
        stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")?;
        Ok(Next::Keep)
    });
    let endpoints = endpoints(guarded(receiver.url("/")));
    for _ in 0..BREAKER.min_calls {
        deliver(&endpoints).await.unwrap_err();
    }
    until("half-open", || state(&endpoints) == BreakerState::HalfOpen).await;

    let endings = join_all((0..500).map(|_| deliver(&endpoints))).await;

    let rejected = endings
        .iter()
        .filter(|ending| matches!(ending, Err(CallError::CircuitOpen { .. })));
    assert_eq!(rejected.count(), 499);
    assert_eq!(receiver.seen().len(), BREAKER.min_calls as usize + 1);
    assert!(is_open(&endpoints), "a probe that fails opens it again");
}

#[tokio::test]
async fn a_probe_that_is_dropped_does_not_keep_others_from_probing() {
    let (receiver, well) = moody();
    let endpoints = endpoints(guarded(receiver.url("/")));
    for _ in 0..BREAKER.min_calls {
        deliver(&endpoints).await.unwrap_err();
    }
    until("half-open", || state(&endpoints) == BreakerState::HalfOpen).await;

    let mut probe = Box::pin(deliver(&endpoints));
    assert!(futures::poll!(&mut probe).is_pending());
    assert!(matches!(
        deliver(&endpoints).await,
        Err(CallError::CircuitOpen { .. })
    ));
    drop(probe);

    well.store(true, Ordering::SeqCst);
    deliver(&endpoints).await.unwrap();
    assert_eq!(state(&endpoints), BreakerState::Closed);
}

#[tokio::test]
async fn refused_payloads_do_not_open_it() {
    let receiver = Receiver::answering("HTTP/1.1 422 No\r\ncontent-length: 0\r\n\r\n");
    let endpoints = endpoints(guarded(receiver.url("/")));

    for _ in 0..BREAKER.min_calls * 2 {
        deliver(&endpoints).await.unwrap_err();
    }

    assert_eq!(state(&endpoints), BreakerState::Closed);
}

#[tokio::test]
async fn refused_connections_and_hung_calls_open_it() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let hanging = Receiver::hanging();

    for url in [format!("http://{nobody}/"), hanging.url("/")] {
        let endpoints = endpoints(EndpointConfig {
            timeout: Duration::from_millis(50),
            ..guarded(url)
        });
        for _ in 0..BREAKER.min_calls {
            deliver(&endpoints).await.unwrap_err();
        }
        assert!(is_open(&endpoints));
    }
}

#[tokio::test]
async fn an_endpoint_that_flaps_is_not_shut_out_for_ever() {
    let receiver = Receiver::start(|stream, nth| {
        let status = if nth % 2 == 1 { 500 } else { 200 };
        write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")?;
        Ok(Next::Keep)
    });
    let endpoints = endpoints(guarded(receiver.url("/")));
    let mut opened = false;
    let mut delivered_since = 0;

    let began = Instant::now();
    while delivered_since < 5 {
        assert!(began.elapsed() < Duration::from_secs(20), "shut out");
        match deliver(&endpoints).await {
            Ok(_) => delivered_since += u32::from(opened),
            Err(CallError::CircuitOpen { retry_in }) => {
                opened = true;
                tokio::time::sleep(retry_in).await;
            }
            Err(_) => {}
        }
    }
}

#[tokio::test]
async fn one_sick_endpoint_does_not_hold_back_another() {
    let (sick, _) = moody();
    let well = Receiver::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let endpoints = Endpoints::new(vec![
        guarded(sick.url("/")),
        EndpointConfig {
            name: "mail".to_owned(),
            ..guarded(well.url("/"))
        },
    ])
    .unwrap();

    for _ in 0..BREAKER.min_calls {
        deliver(&endpoints).await.unwrap_err();
    }

    let other = endpoints.deliver("mail", crate::support::delivery()).await;
    assert_eq!(other.unwrap().unwrap().status, 204);
    let states = endpoints.breakers();
    assert_eq!(states[0], ("mail".to_owned(), BreakerState::Closed));
    assert!(matches!(states[1].1, BreakerState::Open { .. }));
}

#[tokio::test]
async fn a_reload_keeps_the_breaker_unless_its_settings_or_the_url_changed() {
    let (receiver, _) = moody();
    let config = EndpointConfig {
        breaker: BreakerConfig {
            cooldown: Duration::from_secs(60),
            ..BREAKER
        },
        ..guarded(receiver.url("/"))
    };
    let open = async || {
        let endpoints = endpoints(config.clone());
        for _ in 0..BREAKER.min_calls {
            deliver(&endpoints).await.unwrap_err();
        }
        endpoints
    };

    let unchanged = open().await;
    let other_timeout = EndpointConfig {
        timeout: Duration::from_secs(3),
        ..config.clone()
    };
    unchanged.reload(vec![other_timeout]).unwrap();
    assert!(is_open(&unchanged));

    let moved = open().await;
    let elsewhere = EndpointConfig {
        url: receiver.url("/elsewhere"),
        ..config.clone()
    };
    moved.reload(vec![elsewhere]).unwrap();
    assert_eq!(state(&moved), BreakerState::Closed);

    let loosened = open().await;
    let other_breaker = EndpointConfig {
        breaker: BREAKER,
        ..config.clone()
    };
    loosened.reload(vec![other_breaker]).unwrap();
    assert_eq!(state(&loosened), BreakerState::Closed);
}
