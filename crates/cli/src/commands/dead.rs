use std::collections::HashSet;

use posthaste_jobs::{JobId, State};
use posthaste_store::{JobFilter, JobRow, Ledger};
use serde::Serialize;

use super::bulk::{self, Bulk, Selection};
use super::jobs::unknown;
use super::ledger;
use super::story::{JobStory, dead_table};
use crate::clock;
use crate::config::{Scope, Settings};
use crate::failure::Failure;
use crate::print::{Printer, note, print_page};
use crate::select::{JobChoice, Names};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Lists dead letters, newest first
    List(List),
    /// Shows one dead letter and the story of its attempts
    Show(Show),
    /// Runs dead letters anew, with all their attempts
    Replay(Act),
    /// Closes dead letters: they will not be run
    Discard(Act),
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    choice: JobChoice,
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

#[derive(Debug, clap::Args)]
pub(crate) struct Act {
    /// Only these, as with --id
    #[arg(value_name = "ID")]
    named: Vec<JobId>,
    #[command(flatten)]
    choice: JobChoice,
    #[command(flatten)]
    bulk: Bulk,
}

/// What is done with dead letters.
#[derive(Clone, Copy, Debug)]
enum Action {
    Replay,
    Discard,
}

impl Action {
    const fn verb(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Discard => "discard",
        }
    }

    const fn done(self) -> &'static str {
        match self {
            Self::Replay => "replayed",
            Self::Discard => "discarded",
        }
    }

    async fn apply(self, ledger: &Ledger, jobs: &[JobId]) -> Result<Vec<JobId>, Failure> {
        let filter = JobFilter {
            ids: jobs.to_vec(),
            states: vec![State::Dead],
            ..JobFilter::default()
        };
        let limit = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
        Ok(match self {
            Self::Replay => ledger.replay(&filter, limit).await?,
            Self::Discard => ledger.discard(&filter, limit).await?,
        })
    }
}

/// What was done, as JSON shows it.
#[derive(Debug, Serialize)]
struct Summary {
    action: &'static str,
    matched: usize,
    done: usize,
    ids: Vec<JobId>,
}

/// What we stopped trying.
pub(crate) async fn run(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::List(args) => list(args, settings).await,
        Command::Show(args) => show(args, settings).await,
        Command::Replay(args) => act(Action::Replay, args, settings).await,
        Command::Discard(args) => act(Action::Discard, args, settings).await,
    }
}

async fn list(args: List, settings: &Settings) -> Result<(), Failure> {
    let config = settings.load(Scope::Ledger)?;
    let ledger = ledger::open_current(&config, settings).await?;
    let now = clock::now();
    let filter = JobFilter {
        states: vec![State::Dead],
        ..args.choice.filter(now)
    };
    let jobs = ledger::jobs(&ledger, &filter, args.before, args.limit).await?;
    if jobs.is_empty() {
        Names::of(&config).explain_nothing(filter.source.as_deref(), filter.endpoint.as_deref())?;
    }
    let last = jobs.last().filter(|_| jobs.len() == args.limit);
    print_page(&jobs, args.json, dead_table(&jobs, now), last.map(|last| last.id))
}

async fn show(args: Show, settings: &Settings) -> Result<(), Failure> {
    let config = settings.load(Scope::Ledger)?;
    let ledger = ledger::open_current(&config, settings).await?;
    let job = ledger.job(args.id).await?.ok_or_else(|| unknown(args.id))?;
    if job.state != State::Dead {
        return Err(
            Failure::failed(format!("job {} is no dead letter, it is {}", job.id, job.state))
                .hint(format!("posthaste jobs show {}", job.id)),
        );
    }
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

async fn act(action: Action, args: Act, settings: &Settings) -> Result<(), Failure> {
    let Act {
        named,
        mut choice,
        bulk,
    } = args;
    choice.ids.extend(named);
    let selection = Selection::of(!choice.ids.is_empty(), choice.has_filters(), bulk.all)?;
    let config = settings.load(Scope::Ledger)?;
    let ledger = ledger::open_current(&config, settings).await?;
    let now = clock::now();
    let filter = JobFilter {
        states: vec![State::Dead],
        ..choice.filter(now)
    };
    // A picture taken once: what dies again while this runs is not taken up again.
    let jobs = ledger::jobs(&ledger, &filter, None, usize::MAX).await?;
    mention_others(&ledger, &choice.ids, &jobs).await?;
    if jobs.is_empty() {
        Names::of(&config).explain_nothing(filter.source.as_deref(), filter.endpoint.as_deref())?;
        if selection == Selection::Named {
            return Err(Failure::failed(format!("nothing to {}", action.verb())).hint("posthaste dead list"));
        }
    }
    if bulk.dry_run {
        return show_only(&jobs, action, &bulk, now);
    }
    if !jobs.is_empty() && selection != Selection::Named {
        preview(&jobs, action, now);
    }
    bulk.consent(
        selection,
        &format!("{} {}", action.verb(), dead_letters(jobs.len())),
        jobs.len(),
    )?;

    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let mut done = Vec::new();
    let ending = bulk::in_batches(&ids, bulk.rate, action.done(), async |batch| {
        done.extend(action.apply(&ledger, batch).await?);
        Ok(())
    })
    .await;
    ledger.close().await;

    let mut out = Printer::stdout();
    if bulk.json {
        out.json(&Summary {
            action: action.verb(),
            matched: ids.len(),
            done: done.len(),
            ids: done,
        })?;
    } else {
        out.line(format_args!("{} {}", action.done(), dead_letters(done.len())))?;
    }
    out.finish()?;
    ending
}

/// Says which of the jobs that were named are no dead letters, and why.
///
/// # Errors
///
/// One of them does not exist.
async fn mention_others(ledger: &Ledger, named: &[JobId], found: &[JobRow]) -> Result<(), Failure> {
    let found: HashSet<JobId> = found.iter().map(|job| job.id).collect();
    for id in named.iter().filter(|id| !found.contains(id)) {
        let job = ledger.job(*id).await?.ok_or_else(|| unknown(*id))?;
        match job.state {
            State::Dead => note(format!("job {id} is left out: the other filters do not match it")),
            state => note(format!(
                "job {id} is left out: it is no dead letter, it is {state}"
            )),
        }
    }
    Ok(())
}

fn show_only(
    jobs: &[JobRow],
    action: Action,
    bulk: &Bulk,
    now: posthaste_jobs::Timestamp,
) -> Result<(), Failure> {
    let mut out = Printer::stdout();
    if bulk.json {
        out.json(&jobs)?;
    } else if !jobs.is_empty() {
        out.line(dead_table(jobs, now))?;
    }
    out.finish()?;
    note(format!(
        "dry run: would {} {}",
        action.verb(),
        dead_letters(jobs.len())
    ));
    Ok(())
}

/// Shows the first of what would be touched.
fn preview(jobs: &[JobRow], action: Action, now: posthaste_jobs::Timestamp) {
    const SHOWN: usize = 10;
    note(format!("to {}: {}", action.verb(), dead_letters(jobs.len())));
    note(dead_table(&jobs[..jobs.len().min(SHOWN)], now));
    if jobs.len() > SHOWN {
        note(format!("... and {} more", jobs.len() - SHOWN));
    }
}

fn dead_letters(count: usize) -> String {
    if count == 1 {
        "1 dead letter".to_owned()
    } else {
        format!("{count} dead letters")
    }
}
