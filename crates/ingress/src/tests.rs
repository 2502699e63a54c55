//! The server, spoken to over sockets, with a ledger and a queue that fail when they are told to.

mod catalog;
mod connections;
mod harness;
mod limits;
mod log;
mod raw;
mod receive;
