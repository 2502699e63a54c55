use super::ledger;
use crate::config::{Scope, Settings};
use crate::failure::Failure;
use crate::print::note;
use posthaste_jobs::chain;

/// Brings the ledger's schema up to date.
pub(crate) async fn run(settings: &Settings) -> Result<(), Failure> {
    let config = settings.load(Scope::Ledger)?;
    let ledger = ledger::open(&config, settings).await?;
    let migrated = ledger.migrate().await;
    ledger.close().await;
    migrated.map_err(|error| Failure::failed(chain(&error)).hint("posthaste check"))?;
    note(format!("the ledger ({}) is up to date", config.ledger.engine()));
    Ok(())
}
