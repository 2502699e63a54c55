use std::collections::HashSet;

use posthaste_jobs::EventId;
use serde_json::json;
use sqlx::{QueryBuilder, SqliteConnection};

use super::now;
use crate::error::LedgerError;
use crate::value::{millis, parse};
use crate::{Accepted, NewEvent, NewJob};

/// Events in one statement: enough that the way to SQLite's thread and back costs little, few enough that
/// the statement of each length stays prepared.
const ROWS: usize = 16;

/// Accepts events in order, so that the first of several with one identity is the one that counts.
pub(super) async fn accept(
    transaction: &mut SqliteConnection,
    events: &[&NewEvent],
) -> Result<Vec<Result<Accepted, LedgerError>>, sqlx::Error> {
    let mut answers = Vec::with_capacity(events.len());
    let mut jobs = Vec::new();
    for rows in events.chunks(ROWS) {
        let inserted = insert_events(transaction, rows).await?;
        for event in rows {
            if inserted.contains(&event.id.to_string()) {
                jobs.extend(event.jobs.iter().map(|job| entry(event.id, job)));
                answers.push(Ok(Accepted::New));
            } else {
                let stored = find_event(transaction, event).await?;
                answers.push(parse(&stored).map(|stored| event.found(stored)));
            }
        }
    }
    if !jobs.is_empty() {
        insert_jobs(transaction, jobs).await?;
    }
    Ok(answers)
}

/// Inserts those events that are not there, and returns their ids.
async fn insert_events(
    transaction: &mut SqliteConnection,
    events: &[&NewEvent],
) -> Result<HashSet<String>, sqlx::Error> {
    let mut query = QueryBuilder::new(
        "insert into events (id, source, provider_id, event_type, headers, body, received_at) ",
    );
    query.push_values(events, |mut row, event| {
        row.push_bind(event.id.to_string())
            .push_bind(&*event.source)
            .push_bind(&*event.provider_id)
            .push_bind(event.event_type.as_deref())
            .push_bind(event.headers.to_block())
            .push_bind(&*event.body)
            .push(now!());
    });
    query.push(" on conflict (source, provider_id) do nothing returning id");
    let ids: Vec<String> = query.build_query_scalar().fetch_all(transaction).await?;
    Ok(ids.into_iter().collect())
}

async fn find_event(transaction: &mut SqliteConnection, event: &NewEvent) -> Result<String, sqlx::Error> {
    sqlx::query_scalar("select id from events where source = ?1 and provider_id = ?2")
        .bind(&*event.source)
        .bind(&*event.provider_id)
        .fetch_one(transaction)
        .await
}

fn entry(event: EventId, job: &NewJob) -> serde_json::Value {
    json!([
        job.id,
        event,
        job.kind.as_str(),
        job.kind.queue().as_str(),
        job.payload,
        job.endpoint,
        job.state().as_str(),
        job.priority.as_str(),
        millis(job.wait),
    ])
}

/// The relay looks after a job that nobody has claimed 3 s after it was accepted.
async fn insert_jobs(
    transaction: &mut SqliteConnection,
    jobs: Vec<serde_json::Value>,
) -> Result<(), sqlx::Error> {
    sqlx::query(concat!(
        "insert into jobs (id, event_id, kind, queue, payload, endpoint, state, priority, run_at, created_at,
            relay_at)
         select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
            value ->> 7, ",
        now!(),
        " + (value ->> 8), ",
        now!(),
        ", ",
        now!(),
        " + 3000
         from json_each(?1)"
    ))
    .bind(serde_json::Value::Array(jobs).to_string())
    .execute(transaction)
    .await?;
    Ok(())
}
