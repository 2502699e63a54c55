use std::time::Duration;

use futures::StreamExt;
use redis::RedisResult;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::health::{Health, wait};
use super::link::TIMEOUT;
use super::servers::Servers;
use crate::QueueError;

/// How long the channel may be silent before the connection is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(5);

/// Wakes whoever waits on `wake` at each message of `channel`, for ever.
///
/// A message that is missed costs an idle worker at most the time until it looks by itself.
pub(crate) async fn listen(servers: &Servers, channel: &str, health: &Health, wake: &Notify) {
    let mut failures = 0;
    loop {
        match timeout(TIMEOUT, subscribe(servers, channel)).await {
            Ok(Ok((sink, stream))) => {
                failures = 0;
                // What was said while nobody listened.
                wake.notify_waiters();
                relay(sink, stream, wake).await;
            }
            Ok(Err(source)) => match servers.judge("subscribe", source) {
                error @ QueueError::Refused { .. } => health.refused(&error, Instant::now()),
                error => health.failed(&error, Instant::now(), rand::random()),
            },
            Err(_) => health.failed(&QueueError::Timeout(TIMEOUT), Instant::now(), rand::random()),
        }
        failures += 1;
        sleep(wait(failures, rand::random())).await;
    }
}

async fn subscribe(servers: &Servers, channel: &str) -> RedisResult<(PubSubSink, PubSubStream)> {
    let mut subscription = servers.messages().await?;
    subscription.subscribe(channel).await?;
    Ok(subscription.split())
}

/// Returns when the connection is gone.
async fn relay(mut sink: PubSubSink, mut messages: PubSubStream, wake: &Notify) {
    loop {
        match timeout(SILENCE, messages.next()).await {
            Ok(Some(_)) => wake.notify_waiters(),
            Ok(None) => return,
            Err(_) => {
                if !matches!(timeout(TIMEOUT, sink.ping::<redis::Value>()).await, Ok(Ok(_))) {
                    return;
                }
            }
        }
    }
}
