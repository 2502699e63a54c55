//! What an operator, the relay and the keeper of leases write.

use posthaste_jobs::{EventId, JobId};
use serde_json::json;
use sqlx::{QueryBuilder, SqliteConnection};

use super::{Change, now};
use crate::error::{LedgerError, NoSuchEvent};
use crate::value::{millis, parse};
use crate::{Due, JobFilter, Lease, NewJob};

pub(super) async fn change(
    transaction: &mut SqliteConnection,
    change: &Change,
) -> Result<Result<Vec<JobId>, LedgerError>, sqlx::Error> {
    let changed = match change {
        Change::Renew { leases, lease } => renew(transaction, leases, millis(*lease)).await?,
        Change::GiveBack(leases) => give_back(transaction, leases).await?,
        Change::Relayed(dues) => relayed(transaction, dues).await?,
        Change::Replay { filter, limit } => replay(transaction, filter, *limit).await?,
        Change::Discard { filter, limit } => discard(transaction, filter, *limit).await?,
        Change::AddJobs { event, jobs } => {
            let added = add_jobs(transaction, *event, jobs).await?;
            if added.len() < jobs.len() {
                return Ok(Err(NoSuchEvent(*event).into()));
            }
            added
        }
    };
    Ok(changed.iter().map(|id| parse(id)).collect())
}

fn entries(leases: &[Lease]) -> String {
    let entries: Vec<_> = leases
        .iter()
        .map(|lease| json!([lease.job, lease.token]))
        .collect();
    serde_json::Value::Array(entries).to_string()
}

async fn renew(
    transaction: &mut SqliteConnection,
    leases: &[Lease],
    lease: i64,
) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(concat!(
        "update jobs set lease_until = ",
        now!(),
        " + ?2
         from (select value ->> 0 as id, value ->> 1 as token from json_each(?1)) as held
         where jobs.id = held.id and jobs.token = held.token and jobs.state = 'running'
         returning id"
    ))
    .bind(entries(leases))
    .bind(lease)
    .fetch_all(transaction)
    .await
}

/// The job is no longer running, so a late settlement of who gave it back changes nothing; the next
/// claim has another token.
async fn give_back(transaction: &mut SqliteConnection, leases: &[Lease]) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(concat!(
        "update jobs set state = 'queued', lease_until = null, run_at = ",
        now!(),
        ", relay_at = ",
        now!(),
        " + 3000
         from (select value ->> 0 as id, value ->> 1 as token from json_each(?1)) as held
         where jobs.id = held.id and jobs.token = held.token and jobs.state = 'running'
         returning id"
    ))
    .bind(entries(leases))
    .fetch_all(transaction)
    .await
}

async fn relayed(transaction: &mut SqliteConnection, dues: &[Due]) -> Result<Vec<String>, sqlx::Error> {
    let read: Vec<_> = dues.iter().map(|due| json!([due.job, due.relay_at])).collect();
    sqlx::query_scalar(
        "update jobs set relay_at = null
         from (select value ->> 0 as id, value ->> 1 as relay_at from json_each(?1)) as relayed
         where jobs.id = relayed.id and jobs.relay_at = relayed.relay_at
         returning jobs.id",
    )
    .bind(serde_json::Value::Array(read).to_string())
    .fetch_all(transaction)
    .await
}

async fn replay(
    transaction: &mut SqliteConnection,
    filter: &JobFilter,
    limit: u32,
) -> Result<Vec<String>, sqlx::Error> {
    let mut query = QueryBuilder::new(concat!(
        "update jobs set state = 'queued', attempts = 0, crashes = 0, replays = replays + 1,
            finished_at = null, dead_reason = null, run_at = ",
        now!(),
        ", relay_at = ",
        now!(),
        " where id in (select jobs.id from jobs left join events on events.id = jobs.event_id"
    ));
    filter.push(&mut query);
    query.push(" and jobs.state in ('dead', 'discarded', 'cancelled') order by jobs.id limit ");
    query.push_bind(i64::from(limit)).push(") returning id");
    query.build_query_scalar().fetch_all(transaction).await
}

async fn discard(
    transaction: &mut SqliteConnection,
    filter: &JobFilter,
    limit: u32,
) -> Result<Vec<String>, sqlx::Error> {
    let mut query = QueryBuilder::new(
        "update jobs set state = 'discarded'
         where id in (select jobs.id from jobs left join events on events.id = jobs.event_id",
    );
    filter.push(&mut query);
    query.push(" and jobs.state = 'dead' order by jobs.id limit ");
    query.push_bind(i64::from(limit)).push(") returning id");
    query.build_query_scalar().fetch_all(transaction).await
}

/// `relay_at` is now: whoever adds them reaches no queue.
async fn add_jobs(
    transaction: &mut SqliteConnection,
    event: EventId,
    jobs: &[NewJob],
) -> Result<Vec<String>, sqlx::Error> {
    let entries: Vec<_> = jobs
        .iter()
        .map(|job| {
            json!([
                job.id,
                job.kind.as_str(),
                job.kind.queue().as_str(),
                job.payload,
                job.endpoint,
                job.state().as_str(),
                job.priority.as_str(),
                millis(job.wait),
            ])
        })
        .collect();
    sqlx::query_scalar(concat!(
        "insert into jobs (id, event_id, kind, queue, payload, endpoint, state, priority, run_at, replays,
            created_at, relay_at)
         select value ->> 0, events.id, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
            value ->> 6, ",
        now!(),
        " + (value ->> 7), 1, ",
        now!(),
        ", ",
        now!(),
        " from events, json_each(?2)
         where events.id = ?1
         returning id"
    ))
    .bind(event.to_string())
    .bind(serde_json::Value::Array(entries).to_string())
    .fetch_all(transaction)
    .await
}
