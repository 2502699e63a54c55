use std::time::Duration;

use futures::StreamExt;
use redis::RedisResult;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::health::{Health, wait};
use super::link::{TIMEOUT, is_outage};
use crate::QueueError;

/// How long the channel may be silent before the connection is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(5);

/// Wakes whoever waits on `wake` at each message of `channel`, for ever.
///
/// A message that is missed costs an idle worker at most the time until it looks by itself.
pub(crate) async fn listen(client: &redis::Client, channel: &str, health: &Health, wake: &Notify) {
    let mut failures = 0;
    loop {
        match timeout(TIMEOUT, subscribe(client, channel)).await {
            Ok(Ok((sink, stream))) => {
                failures = 0;
                // What was said while nobody listened.
                wake.notify_waiters();
                relay(sink, stream, wake).await;
            }
            Ok(Err(source)) if !is_outage(&source) => {
                let operation = "subscribe";
                health.refused(&QueueError::Refused { operation, source }, Instant::now());
            }
            Ok(Err(error)) => health.failed(&QueueError::Unavailable(error), Instant::now(), rand::random()),
            Err(_) => health.failed(&QueueError::Timeout(TIMEOUT), Instant::now(), rand::random()),
        }
        failures += 1;
        sleep(wait(failures, rand::random())).await;
    }
}

async fn subscribe(client: &redis::Client, channel: &str) -> RedisResult<(PubSubSink, PubSubStream)> {
    let mut subscription = client.get_async_pubsub().await?;
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
