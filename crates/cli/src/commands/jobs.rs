use posthaste_jobs::{EventId, JobId, State};
use posthaste_store::JobFilter;

use super::ledger;
use super::story::{JobStory, job_table};
use crate::clock;
use crate::config::{Scope, Settings};
use crate::failure::Failure;
use crate::print::{Printer, print_page};
use crate::select::{JobChoice, Names, state};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Lists jobs, newest first
    List(Box<List>),
    /// Shows one job and the story of its attempts
    Show(Show),
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    choice: JobChoice,
    /// In this state; may be repeated
    #[arg(long = "state", value_name = "STATE", value_parser = state, help_heading = "Which")]
    states: Vec<State>,
    /// About this event
    #[arg(long, value_name = "ID", help_heading = "Which")]
    event: Option<EventId>,
    /// Older than this job, which is how a long list goes on
    #[arg(long, value_name = "ID", help_heading = "Which")]
    before: Option<JobId>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Which job
    id: JobId,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// What became of what came in.
pub(crate) async fn run(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::List(args) => list(*args, settings).await,
        Command::Show(args) => show(args, settings).await,
    }
}

async fn list(args: List, settings: &Settings) -> Result<(), Failure> {
    let config = settings.load(Scope::Ledger)?;
    let ledger = ledger::open_current(&config, settings).await?;
    let now = clock::now();
    let filter = JobFilter {
        states: args.states,
        event: args.event,
        ..args.choice.filter(now)
    };
    let jobs = ledger::jobs(&ledger, &filter, args.before, args.limit).await?;
    if jobs.is_empty() {
        Names::of(&config).explain_nothing(filter.source.as_deref(), filter.endpoint.as_deref())?;
    }
    let last = jobs.last().filter(|_| jobs.len() == args.limit);
    print_page(&jobs, args.json, job_table(&jobs, now), last.map(|last| last.id))
}

async fn show(args: Show, settings: &Settings) -> Result<(), Failure> {
    let config = settings.load(Scope::Ledger)?;
    let ledger = ledger::open_current(&config, settings).await?;
    let job = ledger.job(args.id).await?.ok_or_else(|| unknown(args.id))?;
    let story = JobStory {
        history: ledger.attempts(args.id).await?,
        job,
    };
    let mut out = Printer::stdout();
    if args.json {
        out.json(&story)?;
    } else {
        story.print(&mut out, clock::now())?;
    }
    out.finish()
}

/// The ledger has no such job.
pub(crate) fn unknown(id: JobId) -> Failure {
    Failure::failed(format!("there is no job {id}")).hint("posthaste jobs list")
}
