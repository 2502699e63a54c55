use std::collections::HashMap;

use serde_json::json;
use sqlx::SqliteConnection;

use super::now;
use crate::Claim;
use crate::claim::{
    BODY_ALONG, CRASH_BUDGET, ClaimRequest, ClaimedEvent, ClaimedJob, EARLY, Verdict, refusal,
};
use crate::error::LedgerError;
use crate::value::millis;

/// Claims jobs; of several claims of one job the first is the one that may get it.
pub(super) async fn claim(
    transaction: &mut SqliteConnection,
    requests: &[&ClaimRequest],
) -> Result<Vec<Result<Verdict, LedgerError>>, sqlx::Error> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let mut jobs = take(transaction, requests).await?;
    let events = read_events(transaction, &jobs).await?;
    let ids: Vec<String> = requests.iter().map(|request| request.job.to_string()).collect();
    let started: Vec<_> = ids.iter().map(|id| jobs.remove(id)).collect();
    let left = ids
        .iter()
        .zip(&started)
        .filter(|(_, job)| job.is_none())
        .map(|(id, _)| id)
        .collect();
    let standing = read_standing(transaction, left).await?;

    let verdicts = ids
        .iter()
        .zip(started)
        .map(|(id, job)| match (job, standing.get(id)) {
            (Some(job), _) => {
                let event = job.event_id.and_then(|id| events.get(&id).cloned());
                ClaimedJob { event, ..job.job }.verdict()
            }
            (None, Some((state, wait))) => refusal(state, *wait).map(Verdict::from),
            (None, None) => Ok(Claim::Unknown.into()),
        });
    Ok(verdicts.collect())
}

struct Taken {
    job: ClaimedJob,
    event_id: Option<String>,
}

type TakenRow = (String, String, String, String, i32, i32, i64, Option<String>);

/// Takes the jobs that are due, and those whose worker was lost; the latter become dead letters once
/// their crash budget is spent.
async fn take(
    transaction: &mut SqliteConnection,
    requests: &[&ClaimRequest],
) -> Result<HashMap<String, Taken>, sqlx::Error> {
    let requests: Vec<_> = requests
        .iter()
        .map(|request| json!([request.job, request.worker, millis(request.lease)]))
        .collect();
    let rows: Vec<TakenRow> = sqlx::query_as(concat!(
        "with clock (now) as (select ",
        now!(),
        "), request (id, worker, lease) as (
            select value ->> 0, value ->> 1, value ->> 2 from json_each(?1)
         )
         update jobs set
            state = iif(jobs.state = 'running' and crashes + 1 >= ?2, 'dead', 'running'),
            finished_at = iif(jobs.state = 'running' and crashes + 1 >= ?2, clock.now, null),
            dead_reason = iif(jobs.state = 'running' and crashes + 1 >= ?2, 'crashed', null),
            relay_at = iif(jobs.state = 'running' and crashes + 1 >= ?2, null, relay_at),
            lease_until = iif(jobs.state = 'running' and crashes + 1 >= ?2, null, clock.now + request.lease),
            worker = iif(jobs.state = 'running' and crashes + 1 >= ?2, jobs.worker, request.worker),
            crashes = crashes + (jobs.state = 'running'),
            error_class = iif(jobs.state = 'running', 'crashed', error_class),
            last_error = iif(jobs.state = 'running', 'worker ' || jobs.worker || ' was lost', last_error),
            token = token + 1
         from request, clock
         where jobs.id = request.id and (
            jobs.state in ('queued', 'scheduled', 'retrying', 'parked') and run_at <= clock.now + ?3
            or jobs.state = 'running' and lease_until < clock.now
         )
         returning id, state, kind, payload, attempts, replays, token, event_id"
    ))
    .bind(serde_json::Value::Array(requests).to_string())
    .bind(CRASH_BUDGET)
    .bind(EARLY)
    .fetch_all(transaction)
    .await?;
    let taken = rows
        .into_iter()
        .map(|(id, state, kind, payload, attempts, replays, token, event_id)| {
            let job = ClaimedJob {
                id: id.clone(),
                state,
                kind,
                payload,
                attempts,
                replays,
                token,
                event: None,
            };
            (id, Taken { job, event_id })
        });
    Ok(taken.collect())
}

type EventColumns = (String, String, Option<String>, i64, Vec<u8>, Option<Vec<u8>>);

async fn read_events(
    transaction: &mut SqliteConnection,
    jobs: &HashMap<String, Taken>,
) -> Result<HashMap<String, ClaimedEvent>, sqlx::Error> {
    let ids: Vec<&str> = jobs.values().filter_map(|job| job.event_id.as_deref()).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<EventColumns> = sqlx::query_as(
        "select id, source, event_type, received_at, headers, iif(octet_length(body) <= ?2, body, null)
         from events where id in (select value from json_each(?1))",
    )
    .bind(json!(ids).to_string())
    .bind(BODY_ALONG)
    .fetch_all(transaction)
    .await?;
    let events = rows
        .into_iter()
        .map(|(id, source, event_type, received_at, headers, body)| {
            let event = ClaimedEvent {
                id: id.clone(),
                source,
                event_type,
                received_at,
                headers: headers.into(),
                body: body.map(Into::into),
            };
            (id, event)
        });
    Ok(events.collect())
}

/// Reads where jobs stand, and how long until they are due or their lease ends.
async fn read_standing(
    transaction: &mut SqliteConnection,
    ids: Vec<&String>,
) -> Result<HashMap<String, (String, i64)>, sqlx::Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(String, String, i64)> = sqlx::query_as(concat!(
        "select id, state, iif(state = 'running', lease_until, run_at) - ",
        now!(),
        " from jobs where id in (select value from json_each(?1))"
    ))
    .bind(json!(ids).to_string())
    .fetch_all(transaction)
    .await?;
    Ok(rows
        .into_iter()
        .map(|(id, state, wait)| (id, (state, wait)))
        .collect())
}
