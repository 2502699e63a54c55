//! The work: claim, handle, settle; and the background roles that see to it that nothing stays behind.
//!
//! The cast: the *worker* (apalis) fetches ids and runs [`Desk::work`] for each; the *desk* claims the
//! job, calls the handler of its kind, decides its ending and settles it; the *keeper* prolongs the
//! leases of what runs here; the *relay* pushes jobs that no worker has seen in time; the *rescuer*
//! pushes everything again when the queue has lost its memory, and the *sweeper* once in a while, in case
//! it has lost a part of it; the *pauser* tells the queue what an operator has paused.
//!
//! The claim's token gives correctness; leases only decide how soon somebody else may try.

mod config;
mod delivery;
mod desk;
mod failure;
#[cfg(test)]
mod house;
mod keeper;
mod outage;
mod pauser;
mod progress;
mod quarantine;
mod relay;
mod rescuer;
mod sweeper;
mod workers;

pub use config::{Config, InvalidConfig};
pub use desk::Desk;
pub use progress::Progress;
pub use quarantine::Quarantine;
pub use workers::{Policies, Workers};
