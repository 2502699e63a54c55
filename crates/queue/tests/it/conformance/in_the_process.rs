//! What only the engine in the process promises.

use posthaste_queue::Depth;

use crate::support::*;

#[tokio::test]
async fn a_million_ids_keep_their_order() {
    let queue = Place::local().open(quick());
    let jobs = ids(1_000_000);
    queue.push(&due(&jobs)).await.unwrap();

    assert_eq!(queue.depth().await.unwrap().ready, 1_000_000);
    assert_eq!(queue.fetch(500).await.unwrap(), jobs[..500]);
}

#[tokio::test]
async fn each_opening_is_empty_and_has_an_epoch_of_its_own() {
    let place = Place::local();
    let (first, second) = (place.open(quick()), place.open(quick()));
    first.push(&due(&ids(1))).await.unwrap();

    assert_ne!(first.epoch().await.unwrap(), second.epoch().await.unwrap());
    assert_eq!(second.depth().await.unwrap(), Depth::default());
}
