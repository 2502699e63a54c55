use posthaste_jobs::chain;
use std::time::Duration;

use posthaste_queue::Queue;
use posthaste_store::{Ledger, LedgerError};
use serde::Serialize;

use super::ledger::is_behind;

use crate::config::{Config, Scope, Settings};
use crate::failure::Failure;
use crate::print::Printer;

/// How long one connection may take.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    what: &'static str,
    message: String,
    /// What to do about it.
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warning,
    Failed,
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

impl Finding {
    fn new(level: Level, what: &'static str, message: impl Into<String>) -> Self {
        Self {
            level,
            what,
            message: message.into(),
            hint: None,
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Reads the configuration, connects to everything, and reports each finding.
///
/// # Errors
///
/// Something failed, or the configuration cannot be used.
pub(crate) async fn run(args: &Args, settings: &Settings) -> Result<(), Failure> {
    let config = settings.load(Scope::Everything)?;
    let mut findings = configuration(&config, settings);
    findings.push(ledger(&config).await);
    findings.push(queue(&config).await);

    let mut out = Printer::stdout();
    if args.json {
        out.json(&findings)?;
    } else {
        for finding in &findings {
            out.line(format_args!(
                "{:<7}  {:<6}  {}",
                finding.level.word(),
                finding.what,
                finding.message
            ))?;
            if let Some(hint) = &finding.hint {
                out.line(format_args!("{:17}hint: {hint}", ""))?;
            }
        }
    }
    out.finish()?;

    match findings
        .iter()
        .filter(|finding| finding.level == Level::Failed)
        .count()
    {
        0 => Ok(()),
        1 => Err(Failure::failed("1 check failed")),
        failed => Err(Failure::failed(format!("{failed} checks failed"))),
    }
}

fn configuration(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let counts = format!(
        "{} sources, {} endpoints, {} routes",
        config.sources.len(),
        config.endpoints.len(),
        config.routes.len()
    );
    findings.push(match settings.file() {
        Some(file) => Finding::new(Level::Ok, "config", format!("{}: {counts}", file.display())),
        None => Finding::new(
            Level::Warning,
            "config",
            format!("there is no posthaste.toml, defaults only: {counts}"),
        )
        .hint("posthaste config default > posthaste.toml"),
    });
    for source in &config.sources {
        let name = &source.name;
        if !config.routes.iter().any(|route| route.source == *name) {
            let message = format!("source {name:?} has no route: its events are kept and go nowhere");
            findings
                .push(Finding::new(Level::Warning, "config", message).hint("add a [[routes]] entry for it"));
        }
        if source.secrets.is_empty() {
            let message = format!("source {name:?} verifies nothing: whoever finds its address can send");
            findings.push(Finding::new(Level::Warning, "config", message).hint("set its scheme and secrets"));
        }
    }
    for endpoint in &config.endpoints {
        let name = &endpoint.name;
        if !config.routes.iter().any(|route| route.endpoint == *name) {
            let message = format!("endpoint {name:?} has no route: nothing is sent to it");
            findings
                .push(Finding::new(Level::Warning, "config", message).hint("add a [[routes]] entry for it"));
        }
        if endpoint.signing_secret.is_none() {
            let message = format!("endpoint {name:?} has no signing_secret: it cannot tell who calls it");
            findings.push(
                Finding::new(Level::Warning, "config", message)
                    .hint("echo \"whsec_$(openssl rand -base64 32)\""),
            );
        }
    }
    findings
}

async fn ledger(config: &Config) -> Finding {
    let engine = config.ledger.engine();
    let ledger = match Ledger::open(&config.ledger.for_room()).await {
        Ok(ledger) => ledger,
        Err(error) => return Finding::new(Level::Failed, "ledger", chain(&error)).hint("correct ledger.url"),
    };
    let finding = match tokio::time::timeout(PATIENCE, ledger.check()).await {
        Ok(Ok(())) => Finding::new(
            Level::Ok,
            "ledger",
            format!("{engine}: it answers, its schema is current"),
        ),
        Ok(Err(error)) if is_behind(&error) => {
            let message = format!("{engine}: it answers, and is brought up to date at the next start");
            Finding::new(Level::Warning, "ledger", message).hint("posthaste migrate")
        }
        Ok(Err(error @ LedgerError::Refused(_))) => {
            Finding::new(Level::Failed, "ledger", format!("{engine}: {}", chain(&error)))
                .hint("posthaste migrate")
        }
        Ok(Err(error @ LedgerError::Unavailable(_))) => {
            Finding::new(Level::Failed, "ledger", format!("{engine}: {}", chain(&error)))
                .hint("see that it runs, and that ledger.url is right")
        }
        Err(_) => late("ledger", engine),
    };
    ledger.close().await;
    finding
}

async fn queue(config: &Config) -> Finding {
    let engine = config.queue.engine();
    let queue = match Queue::open(&config.queue.for_room(), posthaste_jobs::Queue::Webhooks).await {
        Ok(queue) => queue,
        Err(error) => return Finding::new(Level::Failed, "queue", chain(&error)).hint("correct queue.url"),
    };
    let probe = match tokio::time::timeout(PATIENCE, queue.probe()).await {
        Ok(Ok(probe)) => probe,
        Ok(Err(error)) => {
            let finding = Finding::new(Level::Failed, "queue", format!("{engine}: {}", chain(&error)));
            return match error.is_mistake() {
                true => finding,
                false => finding.hint("see that it runs, and that queue.url is right"),
            };
        }
        Err(_) => return late("queue", engine),
    };
    match probe.server {
        None => Finding::new(
            Level::Ok,
            "queue",
            "local: inside the process, for `posthaste up`",
        ),
        Some(server) if server.evicts() => {
            let message = format!("{engine}: it throws jobs out when its memory is full: {server}");
            Finding::new(Level::Failed, "queue", message)
                .hint("redis-cli CONFIG SET maxmemory-policy noeviction")
        }
        Some(server) => Finding::new(Level::Ok, "queue", format!("{engine}: it takes writes: {server}")),
    }
}

fn late(what: &'static str, engine: &str) -> Finding {
    let message = format!("{engine}: no answer within {}s", PATIENCE.as_secs());
    Finding::new(Level::Failed, what, message).hint(format!("see that it runs, and that {what}.url is right"))
}
