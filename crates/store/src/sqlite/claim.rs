use std::collections::HashMap;

use serde_json::json;
use sqlx::SqliteConnection;

use super::now;
use crate::Claim;
use crate::claim::{
    BODY_ALONG, CRASH_BUDGET, ClaimRequest, ClaimedEvent, ClaimedJob, Company, EARLY, Standing, Verdict, lost,
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

    let verdicts =
        ids.iter()
            .zip(requests)
            .zip(started)
            .map(|((id, request), job)| match (job, standing.get(id)) {
                (Some(job), _) => {
                    let event = job.event_id.and_then(|id| events.get(&id).cloned());
                    ClaimedJob { event, ..job.job }.verdict()
                }
                (None, Some(standing)) => standing.refuse(request).map(Verdict::from),
                (None, None) => Ok(Claim::Unknown.into()),
            });
    Ok(verdicts.collect())
}

struct Taken {
    job: ClaimedJob,
    event_id: Option<String>,
}

type TakenRow = (String, String, String, String, i32, i32, i64, Option<String>);

/// Takes the jobs that are due, and those whose worker was lost (whoever asks anew has not been); the latter
/// become dead letters once their crash budget is spent, and are left to who runs nothing else when one more
/// would spend it.
async fn take(
    transaction: &mut SqliteConnection,
    requests: &[&ClaimRequest],
) -> Result<HashMap<String, Taken>, sqlx::Error> {
    let requests: Vec<_> = requests
        .iter()
        .map(|request| {
            let alone = request.company == Company::Alone;
            json!([request.job, request.worker, millis(request.lease), alone])
        })
        .collect();
    let rows: Vec<TakenRow> = sqlx::query_as(concat!(
        "with clock (now) as (select ",
        now!(),
        "), request (id, worker, lease, alone) as (
            select value ->> 0, value ->> 1, value ->> 2, value ->> 3 from json_each(?1)
         ), due as (
            select request.*, clock.now,
                crashes + (state = 'running' and jobs.worker is not request.worker) as crashes,
                state = 'running' and jobs.worker is not request.worker as lost
            from request, clock join jobs on jobs.id = request.id
            where state in ('queued', 'scheduled', 'retrying', 'parked') and run_at <= clock.now + ?3
                or state = 'running' and lease_until < clock.now
         )
         update jobs set
            state = iif(due.crashes >= ?2, 'dead', 'running'),
            finished_at = iif(due.crashes >= ?2, due.now, null),
            dead_reason = iif(due.crashes >= ?2, 'crashed', null),
            relay_at = iif(due.crashes >= ?2, null, relay_at),
            lease_until = iif(due.crashes >= ?2, null, due.now + due.lease),
            worker = iif(due.crashes >= ?2, jobs.worker, due.worker),
            crashes = due.crashes,
            error_class = iif(due.lost, 'crashed', error_class),
            last_error = iif(due.lost, 'worker ' || jobs.worker || ",
        lost!(),
        ", last_error),
            token = token + 1
         from due
         where jobs.id = due.id and (due.alone or due.crashes <> ?2 - 1)
         returning jobs.id, state, kind, payload, attempts, replays, token, event_id"
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

/// Reads where jobs stand.
async fn read_standing(
    transaction: &mut SqliteConnection,
    ids: Vec<&String>,
) -> Result<HashMap<String, Standing>, sqlx::Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(String, String, i64, i32, Option<String>)> = sqlx::query_as(concat!(
        "select id, state, iif(state = 'running', lease_until, run_at) - ",
        now!(),
        ", crashes, worker from jobs where id in (select value from json_each(?1))"
    ))
    .bind(json!(ids).to_string())
    .fetch_all(transaction)
    .await?;
    Ok(rows
        .into_iter()
        .map(|(id, state, wait, crashes, worker)| {
            let standing = Standing {
                state,
                wait,
                crashes,
                worker,
            };
            (id, standing)
        })
        .collect())
}
