//! The log: lines on stderr, for people or for machines.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{Environment, Log, LogFormat};
use crate::failure::Failure;
use crate::log_writer::{self, LogWriter};

/// What others say too much; a filter that names them has its way.
const QUIET: &str = "sqlx=warn,hyper=warn,hyper_util=warn,reqwest=warn,rustls=warn,apalis_core=warn";

/// The variable that takes the place of `[log] filter`.
const VARIABLE: &str = "POSTHASTE_LOG";

/// Starts logging. What was logged is written out when the guard goes.
///
/// # Errors
///
/// `POSTHASTE_LOG` is no filter.
pub(crate) fn start(log: &Log, environment: &Environment) -> Result<log_writer::Guard, Failure> {
    let filter = environment.get(VARIABLE).unwrap_or(&log.filter);
    let filter = EnvFilter::try_new(format!("{QUIET},{filter}"))
        .map_err(|error| Failure::usage(format!("{VARIABLE} is no filter like \"info\": {error}")))?;
    let (writer, guard) = LogWriter::start(std::io::stderr());
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer);
    // A second call, in one process, changes nothing: the first subscriber stays.
    let _ = match log.format {
        LogFormat::Pretty => lines
            .compact()
            .with_target(false)
            .with_ansi(colours(environment))
            .try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    Ok(guard)
}

/// Starts logging for a command that prints data, if `POSTHASTE_LOG` asks for it.
///
/// # Errors
///
/// `POSTHASTE_LOG` is no filter.
pub(crate) fn start_if_asked(environment: &Environment) -> Result<Option<log_writer::Guard>, Failure> {
    environment
        .get(VARIABLE)
        .map(|_| start(&Log::default(), environment))
        .transpose()
}

/// Tells whether stderr wants colours: a terminal, and no `NO_COLOR`.
fn colours(environment: &Environment) -> bool {
    environment.get("NO_COLOR").is_none_or(str::is_empty) && std::io::stderr().is_terminal()
}
