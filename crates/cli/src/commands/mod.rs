//! One file a subcommand, and what they share.

pub(crate) mod bulk;
pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod dead;
pub(crate) mod demo;
pub(crate) mod events;
pub(crate) mod ingress;
pub(crate) mod jobs;
pub(crate) mod ledger;
pub(crate) mod migrate;
pub(crate) mod queues;
mod replay;
pub(crate) mod sample;
pub(crate) mod send;
mod story;
pub(crate) mod up;
pub(crate) mod workers;
