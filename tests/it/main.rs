//! Tests of the whole: the real binary, from outside.

/// Makes a test for `up` on SQLite, and one for two `ingress` and two `workers` on PostgreSQL and Redis.
macro_rules! in_each_setup {
    (fn $name:ident($setup:ident) $body:block) => {
        mod $name {
            use super::*;

            fn test($setup: Setup) $body

            #[test]
            fn on_its_own() {
                test(Setup::Own);
            }

            #[test]
            fn scaled_out() {
                test(Setup::Scaled { ingress: 2, workers: 2 });
            }
        }
    };
}

mod breaker;
mod configuration;
mod crashes;
mod demo;
mod duplicates;
mod endings;
mod limits;
mod operator;
mod outages;
mod pause;
mod payloads;
mod poison;
mod refusals;
mod reload;
mod secrets;
mod shutdown;
mod signatures;
