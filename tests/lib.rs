//! The harness of the tests of the whole.
//!
//! It runs the real binary as child processes, on a real Redis and PostgreSQL where the set-up asks for
//! them, and plays both neighbours: the provider that sends ([`Request`]) and the service that receives
//! ([`Receiver`]). It uses none of our crates, so a mistake there cannot hide itself here: signatures are
//! computed anew, HTTP is spoken over plain sockets, and state is read with the command line.
//!
//! Start with [`TestApp`]; `README.md` tells how to write a test that stays true on a slow machine.

mod harness;

pub use harness::*;
