use posthaste_jobs::EventId;
use posthaste_store::{EventData, EventRow, JobFilter, JobRow};
use serde::Serialize;

use super::story::{event_table, facts, job_table};
use super::{ledger, replay};
use crate::clock;
use crate::config::{Scope, Settings};
use crate::failure::Failure;
use crate::print::{Printer, print_page};
use crate::select::{EventChoice, Names};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Lists events, newest first
    List(List),
    /// Shows one event: its headers and its jobs, or its body
    Show(Show),
    /// Delivers events again, to the endpoints that their routes name today
    Replay(replay::Args),
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    choice: EventChoice,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Which event
    id: EventId,
    /// Writes the body and nothing else, byte for byte as it was received
    #[arg(long, conflicts_with = "json")]
    payload: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// One event, as JSON shows it.
#[derive(Debug, Serialize)]
struct EventStory {
    #[serde(flatten)]
    event: EventRow,
    headers: Vec<(String, String)>,
    deliveries: Vec<JobRow>,
}

/// What came in.
pub(crate) async fn run(command: Command, settings: &Settings) -> Result<(), Failure> {
    match command {
        Command::List(args) => list(args, settings).await,
        Command::Show(args) => show(args, settings).await,
        Command::Replay(args) => replay::run(args, settings).await,
    }
}

async fn list(args: List, settings: &Settings) -> Result<(), Failure> {
    let config = settings.load(Scope::Ledger)?;
    let ledger = ledger::open_current(&config, settings).await?;
    let now = clock::now();
    let filter = args.choice.filter(now);
    let events = ledger::events(&ledger, &filter, args.choice.before, args.limit).await?;
    if events.is_empty() {
        Names::of(&config).explain_nothing(filter.source.as_deref(), None)?;
    }
    let last = events.last().filter(|_| events.len() == args.limit);
    print_page(
        &events,
        args.json,
        event_table(&events, now),
        last.map(|last| last.id),
    )
}

async fn show(args: Show, settings: &Settings) -> Result<(), Failure> {
    let config = settings.load(Scope::Ledger)?;
    let ledger = ledger::open_current(&config, settings).await?;
    let (event, data) = ledger.event(args.id).await?.ok_or_else(|| unknown(args.id))?;
    let mut out = Printer::stdout();
    if args.payload {
        out.bytes(&data.body)?;
        return out.finish();
    }
    let filter = JobFilter {
        event: Some(args.id),
        ..JobFilter::default()
    };
    let deliveries = ledger::jobs(&ledger, &filter, None, usize::MAX).await?;
    let story = EventStory {
        event,
        headers: shown_headers(&data),
        deliveries,
    };
    if args.json {
        out.json(&story)?;
    } else {
        print_story(&mut out, &story)?;
    }
    out.finish()
}

fn print_story(out: &mut Printer, story: &EventStory) -> Result<(), Failure> {
    let event = &story.event;
    let mut lines = vec![
        ("event", event.id.to_string()),
        ("source", event.source.clone()),
        ("provider id", event.provider_id.clone()),
    ];
    lines.extend(event.event_type.clone().map(|name| ("type", name)));
    lines.push(("received", event.received_at.to_string()));
    lines.push((
        "body",
        format!(
            "{} bytes; posthaste events show {} --payload",
            event.size, event.id
        ),
    ));
    facts(out, &lines)?;
    out.line("\nheaders")?;
    let headers: Vec<(&str, String)> = story
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    facts(out, &headers)?;
    out.line("")?;
    if story.deliveries.is_empty() {
        return out.line("no jobs: no route matched when it came in");
    }
    out.line(job_table(&story.deliveries, clock::now()))
}

/// Returns the headers, without what would let a reader act as the sender.
fn shown_headers(data: &EventData) -> Vec<(String, String)> {
    data.headers
        .iter()
        .map(|(name, value)| {
            let value = if is_credential(name) {
                "(hidden)".to_owned()
            } else {
                String::from_utf8_lossy(value).into_owned()
            };
            (name.to_owned(), value)
        })
        .collect()
}

fn is_credential(header: &str) -> bool {
    let name = header.to_ascii_lowercase();
    name.ends_with("authorization")
        || name.contains("cookie")
        || ["token", "secret", "password", "api-key", "apikey"]
            .iter()
            .any(|word| name.contains(word))
}

/// The ledger has no such event.
pub(crate) fn unknown(id: EventId) -> Failure {
    Failure::failed(format!("there is no event {id}")).hint("posthaste events list")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_are_credentials_are_hidden_and_signatures_are_not() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "X-Gitlab-Token",
            "X-API-Key",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in ["X-Hub-Signature-256", "webhook-id", "Content-Type"] {
            assert!(!is_credential(name), "{name}");
        }
    }
}
