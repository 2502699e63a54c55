use std::collections::HashMap;

use posthaste_jobs::JobId;
use serde_json::json;
use sqlx::SqliteConnection;

use super::now;
use crate::{AttemptRecord, Lease, Settled, Settlement};

/// Settles jobs. A settlement counts only while its lease does; of two with one lease the first counts.
pub(super) async fn settle(
    transaction: &mut SqliteConnection,
    settlements: &[&Settlement],
) -> Result<Vec<Settled>, sqlx::Error> {
    if settlements.is_empty() {
        return Ok(Vec::new());
    }
    let mut firsts: HashMap<Lease, &Settlement> = HashMap::with_capacity(settlements.len());
    for settlement in settlements {
        firsts.entry(settlement.lease).or_insert(settlement);
    }
    let mut numbers = end_tries(transaction, &firsts).await?;
    let mut answers = Vec::with_capacity(settlements.len());
    let mut records = Vec::new();
    for settlement in settlements {
        let lease = settlement.lease;
        // Removed, so that another with the same lease finds it lost.
        let number = numbers.remove(&(lease.job.to_string(), lease.token));
        if let (Some(number), Some(attempt)) = (number, &settlement.attempt) {
            records.push(entry(lease.job, number, attempt));
        }
        answers.push(if number.is_some() {
            Settled::Written
        } else {
            Settled::LeaseLost
        });
    }
    if !records.is_empty() {
        insert_attempts(transaction, records).await?;
    }
    Ok(answers)
}

/// Ends the tries whose lease holds, and returns for each the number of attempts over all runs.
async fn end_tries(
    transaction: &mut SqliteConnection,
    settlements: &HashMap<Lease, &Settlement>,
) -> Result<HashMap<(String, i64), i32>, sqlx::Error> {
    let endings: Vec<_> = settlements
        .values()
        .map(|settlement| {
            let change = settlement.change();
            json!([
                settlement.lease.job,
                settlement.lease.token,
                change.state,
                change.wait,
                change.spent,
                change.dead_reason,
                settlement
                    .attempt
                    .as_ref()
                    .and_then(|attempt| attempt.error_class.as_deref()),
                settlement.error,
            ])
        })
        .collect();
    let rows: Vec<(String, i64, i32)> = sqlx::query_as(concat!(
        "with ending (id, token, state, wait, spent, dead_reason, error_class, last_error) as materialized (
            select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
                value ->> 7
            from json_each(?1)
         )
         update jobs set
            state = ending.state,
            run_at = iif(ending.wait is null, run_at, ",
        now!(),
        " + ending.wait),
            finished_at = iif(ending.wait is null, ",
        now!(),
        ", null),
            attempts = attempts + ending.spent,
            attempts_total = attempts_total + ending.spent,
            -- A worker that wrote an ending was not taken down.
            crashes = iif(ending.spent > 0, 0, crashes),
            dead_reason = ending.dead_reason,
            error_class = coalesce(ending.error_class, jobs.error_class),
            last_error = coalesce(ending.last_error, jobs.last_error),
            lease_until = null,
            relay_at = null
         from ending
         where jobs.id = ending.id and jobs.token = ending.token and jobs.state = 'running'
         returning id, token, attempts_total"
    ))
    .bind(serde_json::Value::Array(endings).to_string())
    .fetch_all(transaction)
    .await?;
    Ok(rows
        .into_iter()
        .map(|(id, token, number)| ((id, token), number))
        .collect())
}

fn entry(job: JobId, number: i32, attempt: &AttemptRecord) -> serde_json::Value {
    json!([
        job,
        number,
        attempt.started_at.as_millis(),
        attempt.duration_ms.min(i64::MAX.unsigned_abs()),
        attempt.outcome,
        attempt.error_class,
        attempt.error,
        attempt.http_status,
        attempt.response,
        attempt.worker,
    ])
}

async fn insert_attempts(
    transaction: &mut SqliteConnection,
    records: Vec<serde_json::Value>,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "insert into attempts (job_id, number, started_at, duration_ms, outcome, error_class, error,
            http_status, response, worker)
         select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6,
            value ->> 7, value ->> 8, value ->> 9
         from json_each(?1)",
    )
    .bind(serde_json::Value::Array(records).to_string())
    .execute(transaction)
    .await?;
    Ok(())
}
