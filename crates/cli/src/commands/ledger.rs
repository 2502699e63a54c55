use posthaste_jobs::{EventId, JobId};
use posthaste_store::{
    EventFilter, EventRow, JobFilter, JobRow, Ledger, LedgerError, OpenError, SchemaError,
};

use crate::config::{Config, Settings};
use crate::failure::{Failure, chain};

/// Rows that are read at once.
const PAGE: u32 = 1000;

/// Opens the ledger that a configuration names.
pub(crate) async fn open(config: &Config, settings: &Settings) -> Result<Ledger, Failure> {
    let opened = Ledger::open(&config.ledger.for_room()).await;
    Ok(opened.map_err(|error| {
        let key = match error {
            OpenError::TooFewConnections { .. } => "max_connections",
            _ => "url",
        };
        settings.blame("ledger", key, chain(&error))
    })?)
}

/// Opens the ledger to read or steer it.
///
/// One in a file that nobody has used yet is set up, so that it can say that it holds nothing. A server's
/// tables are another matter: they may belong to processes of an older version that are running.
pub(crate) async fn open_current(config: &Config, settings: &Settings) -> Result<Ledger, Failure> {
    let ledger = open(config, settings).await?;
    match ledger.check().await {
        Err(error) if is_behind(&error) && config.ledger.engine() == "sqlite" => ledger.migrate().await?,
        checked => checked?,
    }
    Ok(ledger)
}

/// Tells whether the ledger answered, and only lacks a migration.
pub(crate) fn is_behind(error: &LedgerError) -> bool {
    match error {
        LedgerError::Refused(cause) => {
            matches!(cause.downcast_ref::<SchemaError>(), Some(SchemaError::Behind(_)))
        }
        LedgerError::Unavailable(_) => false,
    }
}

/// Reads the newest `limit` jobs, page by page.
pub(crate) async fn jobs(
    ledger: &Ledger,
    filter: &JobFilter,
    mut before: Option<JobId>,
    limit: usize,
) -> Result<Vec<JobRow>, Failure> {
    let mut rows = Vec::new();
    while rows.len() < limit {
        let wanted = page(limit - rows.len());
        let page = ledger.jobs(filter, before, wanted).await?;
        let is_last = page.len() < wanted as usize;
        before = page.last().map(|row| row.id);
        rows.extend(page);
        if is_last {
            break;
        }
    }
    Ok(rows)
}

/// Reads the newest `limit` events, page by page.
pub(crate) async fn events(
    ledger: &Ledger,
    filter: &EventFilter,
    mut before: Option<EventId>,
    limit: usize,
) -> Result<Vec<EventRow>, Failure> {
    let mut rows = Vec::new();
    while rows.len() < limit {
        let wanted = page(limit - rows.len());
        let page = ledger.events(filter, before, wanted).await?;
        let is_last = page.len() < wanted as usize;
        before = page.last().map(|row| row.id);
        rows.extend(page);
        if is_last {
            break;
        }
    }
    Ok(rows)
}

fn page(left: usize) -> u32 {
    u32::try_from(left).unwrap_or(PAGE).min(PAGE)
}
