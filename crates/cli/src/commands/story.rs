//! How jobs and events look to an operator: as rows, and as the story of one.

use std::time::Duration;

use posthaste_jobs::Timestamp;
use posthaste_store::{AttemptRecord, EventRow, JobRow};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use crate::failure::Failure;
use crate::print::{Column, Printer, Table, clean};

/// A job with its attempts.
#[derive(Debug)]
pub(crate) struct JobStory {
    /// The job.
    pub(crate) job: JobRow,
    /// One for each try, in order.
    pub(crate) history: Vec<AttemptRecord>,
}

/// The job's fields, with its attempts themselves under `attempts`, and how many of them count since
/// its start or last replay under `attempts_spent`.
impl Serialize for JobStory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serde_json::to_value(&self.job).map_err(S::Error::custom)?;
        fields["attempts_spent"] = fields["attempts"].take();
        fields["attempts"] = serde_json::to_value(&self.history).map_err(S::Error::custom)?;
        fields.serialize(serializer)
    }
}

impl JobStory {
    /// Prints the job, then its attempts.
    pub(crate) fn print(&self, out: &mut Printer, now: Timestamp) -> Result<(), Failure> {
        let job = &self.job;
        let state = match &job.dead_reason {
            Some(reason) => format!("{} ({reason})", job.state),
            None => job.state.to_string(),
        };
        let moment = |moment: Timestamp| format!("{moment} ({})", relative(moment, now));
        let replayed = match job.replays {
            0 => String::new(),
            1 => ", replayed once".to_owned(),
            times => format!(", replayed {times} times"),
        };
        let mut lines = vec![
            ("job", job.id.to_string()),
            ("state", state),
            ("kind", job.kind.clone()),
            ("queue", format!("{}, priority {}", job.queue, job.priority)),
        ];
        lines.extend(job.endpoint.clone().map(|endpoint| ("endpoint", endpoint)));
        lines.extend(job.event_id.map(|event| ("event", event.to_string())));
        lines.extend(job.source.clone().map(|source| ("source", source)));
        lines.extend(job.event_type.clone().map(|name| ("type", name)));
        lines.push(("attempts", format!("{} since its start{replayed}", job.attempts)));
        lines.push(("created", moment(job.created_at)));
        match job.finished_at {
            Some(finished) => lines.push(("ended", moment(finished))),
            None => lines.push(("due", moment(job.run_at))),
        }
        lines.extend(job.last_error.clone().map(|error| ("error", error)));
        facts(out, &lines)?;
        self.print_history(out)
    }

    fn print_history(&self, out: &mut Printer) -> Result<(), Failure> {
        out.line("")?;
        if self.history.is_empty() {
            return out.line("no attempt has been made");
        }
        let mut table = Table::new([
            Column::whole("#"),
            Column::whole("STARTED"),
            Column::whole("TOOK"),
            Column::whole("OUTCOME"),
            Column::cut("CLASS"),
            Column::whole("STATUS"),
            Column::cut("RESPONSE"),
        ]);
        for attempt in &self.history {
            table.row([
                attempt.number.to_string(),
                attempt.started_at.to_string(),
                took(Duration::from_millis(attempt.duration_ms)),
                attempt.outcome.clone(),
                attempt.error_class.clone().unwrap_or_else(dash),
                attempt.http_status.map_or_else(dash, |status| status.to_string()),
                first_line(attempt),
            ]);
        }
        out.line(table)
    }
}

/// Returns what came back in one line, or what happened instead.
fn first_line(attempt: &AttemptRecord) -> String {
    let response = attempt
        .response
        .as_deref()
        .and_then(|text| text.lines().find(|line| !line.trim().is_empty()));
    response
        .or(attempt.error.as_deref())
        .map_or_else(dash, |line| line.trim().to_owned())
}

/// Prints names and values, one pair a line.
pub(crate) fn facts(out: &mut Printer, lines: &[(&str, String)]) -> Result<(), Failure> {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in lines {
        out.line(format_args!("{name:<width$}  {}", clean(value)))?;
    }
    Ok(())
}

/// Shows jobs as rows.
pub(crate) fn job_table(jobs: &[JobRow], now: Timestamp) -> impl std::fmt::Display + use<> {
    let mut table = Table::new([
        Column::whole("ID"),
        Column::whole("AGE"),
        Column::whole("STATE"),
        Column::whole("TRIES"),
        Column::cut("ENDPOINT"),
        Column::cut("ERROR"),
    ]);
    for job in jobs {
        table.row([
            job.id.to_string(),
            age(job.created_at, now),
            job.state.to_string(),
            job.attempts.to_string(),
            job.endpoint.clone().unwrap_or_else(dash),
            job.last_error.clone().unwrap_or_else(dash),
        ]);
    }
    table
}

/// Shows dead letters as rows.
pub(crate) fn dead_table(jobs: &[JobRow], now: Timestamp) -> impl std::fmt::Display + use<> {
    let mut table = Table::new([
        Column::whole("ID"),
        Column::whole("DEAD"),
        Column::whole("TRIES"),
        Column::cut("ENDPOINT"),
        Column::cut("TYPE"),
        Column::cut("ERROR"),
    ]);
    for job in jobs {
        table.row([
            job.id.to_string(),
            age(job.finished_at.unwrap_or(job.created_at), now),
            job.attempts.to_string(),
            job.endpoint.clone().unwrap_or_else(dash),
            job.event_type.clone().unwrap_or_else(dash),
            job.last_error.clone().unwrap_or_else(dash),
        ]);
    }
    table
}

/// Shows events as rows.
pub(crate) fn event_table(events: &[EventRow], now: Timestamp) -> impl std::fmt::Display + use<> {
    let mut table = Table::new([
        Column::whole("ID"),
        Column::whole("AGE"),
        Column::cut("SOURCE"),
        Column::cut("TYPE"),
        Column::whole("BYTES"),
        Column::whole("JOBS"),
    ]);
    for event in events {
        table.row([
            event.id.to_string(),
            age(event.received_at, now),
            event.source.clone(),
            event.event_type.clone().unwrap_or_else(dash),
            event.size.to_string(),
            event.jobs.to_string(),
        ]);
    }
    table
}

/// Returns how long ago, in one unit: `5s`, `12m`, `3h`, `40d`.
pub(crate) fn age(moment: Timestamp, now: Timestamp) -> String {
    short(now.since(moment))
}

fn relative(moment: Timestamp, now: Timestamp) -> String {
    if moment > now {
        format!("in {}", short(moment.since(now)))
    } else {
        format!("{} ago", age(moment, now))
    }
}

pub(crate) fn short(span: Duration) -> String {
    match span.as_secs() {
        secs @ 0..=119 => format!("{secs}s"),
        secs @ 120..=7199 => format!("{}m", secs / 60),
        secs @ 7200..=172_799 => format!("{}h", secs / 3600),
        secs => format!("{}d", secs / 86_400),
    }
}

fn took(span: Duration) -> String {
    if span < Duration::from_secs(10) {
        format!("{}ms", span.as_millis())
    } else {
        format!("{}s", span.as_secs())
    }
}

pub(crate) fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(response: Option<&str>, error: Option<&str>) -> AttemptRecord {
        AttemptRecord {
            number: 1,
            started_at: Timestamp::default(),
            duration_ms: 12,
            outcome: "failed".to_owned(),
            error_class: Some("status".to_owned()),
            error: error.map(str::to_owned),
            http_status: Some(500),
            response: response.map(str::to_owned),
            worker: "w".to_owned(),
        }
    }

    #[test]
    fn an_attempt_shows_the_first_line_of_the_response_or_what_happened_instead() {
        assert_eq!(
            first_line(&attempt(Some("\n  no such order\nmore"), Some("answered 500"))),
            "no such order"
        );
        assert_eq!(
            first_line(&attempt(Some("  \n"), Some("answered 500"))),
            "answered 500"
        );
        assert_eq!(first_line(&attempt(None, None)), "-");
    }

    #[test]
    fn an_age_is_in_one_unit() {
        let ages = [0, 119, 120, 7199, 7200, 172_799, 172_800].map(|secs| short(Duration::from_secs(secs)));

        assert_eq!(ages, ["0s", "119s", "2m", "119m", "2h", "47h", "2d"]);
    }
}
