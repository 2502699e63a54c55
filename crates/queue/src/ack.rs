use std::convert::Infallible;
use std::time::Duration;

use apalis_core::backend::codec::Codec;

/// What a handler tells the queue of a job that it is done with for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// The queue can forget it.
    Done,
    /// Due again after this long, among the retries.
    Again(Duration),
    /// Never begun: it goes back to the head of the line.
    Back,
}

/// Passes an [`Ack`] through apalis as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckCodec;

impl Codec<Ack> for AckCodec {
    type Compact = Ack;
    type Error = Infallible;

    fn encode(&self, ack: &Ack) -> Result<Ack, Infallible> {
        Ok(*ack)
    }

    fn decode(&self, ack: &Ack) -> Result<Ack, Infallible> {
        Ok(*ack)
    }
}
