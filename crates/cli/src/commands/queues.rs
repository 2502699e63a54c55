use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_jobs::{Lane, Queue, Timestamp, chain};
use posthaste_queue::Survey;
use posthaste_store::Standing;
use serde::Serialize;
use tokio::time::timeout;

use super::ledger;
use super::story::{age, dash, short};
use crate::clock;
use crate::config::{Config, Scope, Settings};
use crate::failure::Failure;
use crate::print::{Column, Printer, Table, note};
use crate::select::queue;

/// How long a Redis may take to say how it stands, or to hear of a pause.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Lists the queues: what waits in each, for how long, and whether it is paused
    List(List),
    /// Has nothing of a queue started, in any process, until it is resumed; what runs goes on to its end
    Pause(Which),
    /// Has a paused queue started again
    Resume(Which),
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// Which queue
    #[arg(value_name = "NAME", value_parser = queue)]
    name: Queue,
}

/// The lists that jobs wait in.
pub(crate) async fn run(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::List(args) => list(&args, settings).await,
        Command::Pause(which) => set_paused(which.name, true, settings).await,
        Command::Resume(which) => set_paused(which.name, false, settings).await,
    }
}

/// A queue as JSON shows it.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    #[serde(flatten)]
    standing: Standing,
    /// Null: it is inside a process, where nobody else can look, or it is away.
    engine: Option<Engine>,
}

/// What a queue holds, by its own count.
#[derive(Debug, Serialize)]
struct Engine {
    ready: BTreeMap<&'static str, u64>,
    scheduled: u64,
    leased: u64,
    last_fetch_ms: Option<u128>,
}

impl From<Survey> for Engine {
    fn from(survey: Survey) -> Self {
        let ready = Lane::ALL.iter().map(|lane| lane.as_str()).zip(survey.lanes);
        Self {
            ready: ready.collect(),
            scheduled: survey.scheduled,
            leased: survey.leased,
            last_fetch_ms: survey.fetched.map(|ago| ago.as_millis()),
        }
    }
}

async fn list(args: &List, settings: &Settings) -> Result<(), Failure> {
    let config = settings.load(Scope::Queues)?;
    let ledger = ledger::open_current(&config, settings).await?;
    let mut rows = Vec::new();
    for name in Queue::ALL {
        rows.push(Row {
            name: name.as_str(),
            standing: ledger.standing(name).await?,
            engine: survey(&config, settings, name).await?,
        });
    }
    let mut out = Printer::stdout();
    if args.json {
        out.json(&rows)?;
    } else {
        out.line(table(&rows, clock::now()))?;
    }
    out.finish()
}

/// Asks the queue itself. One that is away is no failure: the ledger knows what waits.
async fn survey(config: &Config, settings: &Settings, name: Queue) -> Result<Option<Engine>, Failure> {
    if config.queue.is_local() {
        return Ok(None);
    }
    let queue = open(config, settings, name).await?;
    match timeout(PATIENCE, queue.survey()).await {
        Ok(Ok(survey)) => return Ok(Some(survey.into())),
        Ok(Err(error)) => note(format!("{name}: {}", chain(&error))),
        Err(_) => note(format!("{name}: redis did not answer")),
    }
    Ok(None)
}

fn table(rows: &[Row], now: Timestamp) -> impl std::fmt::Display + use<> {
    let mut table = Table::new([
        Column::whole("QUEUE"),
        Column::whole("STANDING"),
        Column::whole("WAITING"),
        Column::whole("LATER"),
        Column::whole("RUNNING"),
        Column::whole("DEAD"),
        Column::whole("OLDEST"),
    ]);
    for Row { name, standing, .. } in rows {
        let count = |states: &[&str]| {
            let jobs = states.iter().filter_map(|state| standing.jobs.get(state));
            jobs.sum::<u64>().to_string()
        };
        table.row([
            (*name).to_owned(),
            standing
                .paused_at
                .map_or_else(|| "open".to_owned(), |at| format!("paused {}", age(at, now))),
            count(&["queued"]),
            count(&["scheduled", "retrying", "parked"]),
            count(&["running"]),
            count(&["dead"]),
            standing
                .oldest_due_ms
                .map_or_else(dash, |ms| short(Duration::from_millis(ms))),
        ]);
    }
    table
}

/// Writes it down, and tells the queue at once where it can be reached; the workers see to the rest.
async fn set_paused(name: Queue, paused: bool, settings: &Settings) -> Result<(), Failure> {
    let config = settings.load(Scope::Queues)?;
    let ledger = ledger::open_current(&config, settings).await?;
    let changed = ledger.set_paused(name, paused).await?;
    if !config.queue.is_local() {
        let queue = open(&config, settings, name).await?;
        if !matches!(timeout(PATIENCE, queue.set_paused(paused)).await, Ok(Ok(()))) {
            note("redis cannot be told now; the workers tell it as soon as they reach it");
        }
    }
    let mut out = Printer::stdout();
    out.line(match (paused, changed) {
        (true, true) => {
            format!("paused {name}: nothing of it is started until `posthaste queues resume {name}`")
        }
        (true, false) => format!("{name} was paused already"),
        (false, true) => format!("resumed {name}"),
        (false, false) => format!("{name} was not paused"),
    })?;
    out.finish()
}

async fn open(config: &Config, settings: &Settings, name: Queue) -> Result<posthaste_queue::Queue, Failure> {
    let opened = posthaste_queue::Queue::open(&config.queue.for_room(), name).await;
    Ok(opened.map_err(|error| settings.blame("queue", "url", chain(&error)))?)
}
