//! Which events and jobs an operator means.

mod filter;
mod known;
mod moment;

pub(crate) use filter::{EventChoice, JobChoice};
pub(crate) use known::{Names, queue, state};
