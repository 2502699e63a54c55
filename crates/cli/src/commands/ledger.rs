use posthaste_jobs::{EventId, JobId, chain};
use posthaste_store::{
    EventFilter, EventRow, JobFilter, JobRow, Ledger, LedgerError, OpenError, SchemaError,
};

use crate::config::{Config, Settings};
use crate::failure::Failure;

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
    before: Option<JobId>,
    limit: usize,
) -> Result<Vec<JobRow>, Failure> {
    newest(
        limit,
        before,
        |row: &JobRow| row.id,
        async |before, most| ledger.jobs(filter, before, most).await,
    )
    .await
}

/// Reads the newest `limit` events, page by page.
pub(crate) async fn events(
    ledger: &Ledger,
    filter: &EventFilter,
    before: Option<EventId>,
    limit: usize,
) -> Result<Vec<EventRow>, Failure> {
    newest(
        limit,
        before,
        |row: &EventRow| row.id,
        async |before, most| ledger.events(filter, before, most).await,
    )
    .await
}

/// Reads pages of rows, each from before the last id of the one above, until there are `limit` or no more.
async fn newest<Row, Id>(
    limit: usize,
    mut before: Option<Id>,
    id: impl Fn(&Row) -> Id,
    read: impl AsyncFn(Option<Id>, u32) -> Result<Vec<Row>, LedgerError>,
) -> Result<Vec<Row>, Failure>
where
    Id: Copy,
{
    let mut rows = Vec::new();
    while rows.len() < limit {
        let wanted = u32::try_from(limit - rows.len()).unwrap_or(PAGE).min(PAGE);
        let page = read(before, wanted).await?;
        let is_last = page.len() < wanted as usize;
        before = page.last().map(&id);
        rows.extend(page);
        if is_last {
            break;
        }
    }
    Ok(rows)
}
