//! `posthaste events replay`.

use posthaste_ingress::Catalog;
use posthaste_jobs::{EventId, JobId, Timestamp, chain};
use posthaste_store::{EventRow, Ledger, NewJob};
use serde::Serialize;

use super::bulk::{self, Bulk, Selection};
use super::events::unknown;
use super::ledger;
use super::story::event_table;
use crate::clock;
use crate::config::{Scope, Settings};
use crate::failure::Failure;
use crate::print::{Printer, note};
use crate::select::{EventChoice, Names};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these
    #[arg(value_name = "ID")]
    named: Vec<EventId>,
    #[command(flatten)]
    choice: EventChoice,
    #[command(flatten)]
    bulk: Bulk,
}

/// An event that is to be replayed.
struct Target {
    event: EventId,
    deliveries: Vec<NewJob>,
}

/// What a replay did, as JSON shows it.
#[derive(Debug, Serialize)]
struct Summary {
    action: &'static str,
    matched: usize,
    unrouted: usize,
    done: usize,
    job_ids: Vec<JobId>,
}

/// Delivers events again, to the endpoints that their routes name today.
///
/// # Errors
///
/// Nothing to replay, or it could not be written.
pub(crate) async fn run(args: Args, settings: &Settings) -> Result<(), Failure> {
    let Args { named, choice, bulk } = args;
    let selection = Selection::of(!named.is_empty(), choice.has_filters(), bulk.all)?;
    if !named.is_empty() && choice.has_filters() {
        return Err(Failure::usage("give ids or filters, not both").hint("posthaste events list --help"));
    }
    let config = settings.load(Scope::Everything)?;
    let catalog = config.catalog().map_err(|error| Failure::usage(chain(&error)))?;
    let ledger = ledger::open_current(&config, settings).await?;
    let now = clock::now();
    let events = if named.is_empty() {
        ledger::events(&ledger, &choice.filter(now), choice.before, usize::MAX).await?
    } else {
        by_id(&ledger, &named).await?
    };
    if events.is_empty() {
        Names::of(&config).explain_nothing(choice.source.as_deref(), None)?;
    }
    let targets = targets(&catalog, &events, now);
    let unrouted = events.len() - targets.len();
    if unrouted > 0 {
        note(format!(
            "no route matches {unrouted} of {}: nothing is done about them",
            count(events.len())
        ));
    }
    if targets.is_empty() && !events.is_empty() {
        return Err(Failure::failed("no route matches any of these events").hint("posthaste check"));
    }
    let jobs: usize = targets.iter().map(|target| target.deliveries.len()).sum();
    let what = format!("replay {} as {}", count(targets.len()), deliveries(jobs));
    if bulk.dry_run {
        let mut out = Printer::stdout();
        if bulk.json {
            out.json(&events)?;
        } else if !events.is_empty() {
            out.line(event_table(&events, now))?;
        }
        out.finish()?;
        note(format!("dry run: would {what}"));
        return Ok(());
    }
    if selection != Selection::Named && !events.is_empty() {
        preview(&events, now);
    }
    bulk.consent(selection, &what, targets.len())?;

    let mut added = Vec::new();
    let mut last = None;
    let ending = bulk::in_batches(&targets, bulk.rate, "replayed", async |batch| {
        for target in batch {
            added.extend(add_jobs(&ledger, target).await?);
            last = Some(target.event);
        }
        Ok(())
    })
    .await;
    ledger.close().await;

    let mut out = Printer::stdout();
    if bulk.json {
        let done = targets
            .iter()
            .take_while(|target| last.is_some_and(|last| target.event >= last))
            .count();
        out.json(&Summary {
            action: "replay",
            matched: events.len(),
            unrouted,
            done,
            job_ids: added,
        })?;
    } else {
        out.line(format_args!("queued {}", deliveries(added.len())))?;
    }
    out.finish()?;
    // Newest first, so what is left is older than the last one.
    ending.map_err(|failure| match last {
        Some(last) if named.is_empty() => failure.hint(format!("add --before {last} to go on from here")),
        _ => failure,
    })
}

async fn by_id(ledger: &Ledger, ids: &[EventId]) -> Result<Vec<EventRow>, Failure> {
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        let (row, _) = ledger.event(*id).await?.ok_or_else(|| unknown(*id))?;
        rows.push(row);
    }
    Ok(rows)
}

/// Returns what each event leads to by today's routes; those that go nowhere are left out.
fn targets(catalog: &Catalog, events: &[EventRow], now: Timestamp) -> Vec<Target> {
    events
        .iter()
        .map(|event| Target {
            event: event.id,
            deliveries: catalog.deliveries(&event.source, event.event_type.as_deref(), now),
        })
        .filter(|target| !target.deliveries.is_empty())
        .collect()
}

/// Adds the deliveries of an event; all of them or none.
async fn add_jobs(ledger: &Ledger, target: &Target) -> Result<Vec<JobId>, Failure> {
    ledger.add_jobs(target.event, target.deliveries.clone()).await?;
    Ok(target.deliveries.iter().map(|job| job.id).collect())
}

/// Shows the first of what would be replayed.
fn preview(events: &[EventRow], now: Timestamp) {
    const SHOWN: usize = 10;
    note(event_table(&events[..events.len().min(SHOWN)], now));
    if events.len() > SHOWN {
        note(format!("... and {} more", events.len() - SHOWN));
    }
}

fn count(events: usize) -> String {
    if events == 1 {
        "1 event".to_owned()
    } else {
        format!("{events} events")
    }
}

fn deliveries(jobs: usize) -> String {
    if jobs == 1 {
        "1 delivery".to_owned()
    } else {
        format!("{jobs} deliveries")
    }
}
