use std::time::{Duration, Instant};

use futures::future::join_all;
use posthaste_outbound::{CallError, EndpointConfig};

use crate::receiver::Receiver;
use crate::support::{deliver, endpoint, endpoints, until};

#[tokio::test]
async fn a_hanging_endpoint_holds_its_limit_of_calls_and_sends_the_rest_away() {
    let receiver = Receiver::hanging();
    let endpoints = endpoints(EndpointConfig {
        max_in_flight: 4,
        timeout: Duration::from_secs(3),
        ..endpoint(receiver.url("/"))
    });
    let timed = async || {
        let began = Instant::now();
        (deliver(&endpoints).await, began.elapsed())
    };

    let endings = join_all((0..200).map(|_| timed())).await;

    let held = endings
        .iter()
        .filter(|(_, took)| *took > Duration::from_millis(1_500));
    let busy = endings
        .iter()
        .filter(|(ending, _)| matches!(ending, Err(CallError::Busy { .. })));
    assert_eq!(held.count(), 4);
    assert_eq!(busy.count(), 196);
    assert_eq!(receiver.seen().len(), 4);
}

#[tokio::test]
async fn no_more_calls_than_the_limit_reach_the_endpoint_at_once() {
    let receiver = Receiver::hanging();
    let endpoints = endpoints(EndpointConfig {
        max_in_flight: 2,
        ..endpoint(receiver.url("/"))
    });

    let endings = join_all((0..3).map(|_| deliver(&endpoints))).await;

    let sent = endings
        .iter()
        .filter(|ending| matches!(ending, Err(CallError::Timeout(_))));
    assert_eq!(sent.count(), 2);
    assert_eq!(receiver.seen().len(), 2);
}

#[tokio::test]
async fn calls_that_are_dropped_give_their_slots_back() {
    let receiver = Receiver::hanging();
    let endpoints = endpoints(EndpointConfig {
        max_in_flight: 2,
        ..endpoint(receiver.url("/"))
    });

    for round in 1..=3 {
        let mut calls: Vec<_> = (0..2).map(|_| Box::pin(deliver(&endpoints))).collect();
        let arrived = until("both calls have arrived", || receiver.seen().len() == 2 * round);
        let calling = join_all(calls.iter_mut());
        tokio::select! {
            _ = calling => panic!("a hanging endpoint has answered"),
            () = arrived => {}
        }
    }
}

#[tokio::test]
async fn a_change_of_the_limit_takes_effect_on_reload() {
    let receiver = Receiver::hanging();
    let config = EndpointConfig {
        max_in_flight: 1,
        ..endpoint(receiver.url("/"))
    };
    let endpoints = endpoints(config.clone());
    endpoints
        .reload(vec![EndpointConfig {
            max_in_flight: 3,
            ..config
        }])
        .unwrap();

    join_all((0..3).map(|_| deliver(&endpoints))).await;

    assert_eq!(receiver.seen().len(), 3);
}
