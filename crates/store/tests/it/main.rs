//! What the ledger promises, held against SQLite and against PostgreSQL by the same tests.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod accept;
mod claim;
mod operate;
mod outage;
mod place;
mod queues;
mod read;
mod recover;
mod schema;
mod settle;

/// Runs each of the named tests on both databases.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    let place = crate::place::Place::sqlite();
                    super::$name(&place).await;
                    place.remove().await;
                }
            )+
        }
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    let place = crate::place::Place::postgres().await;
                    super::$name(&place).await;
                    place.remove().await;
                }
            )+
        }
    };
}
use on_both;
