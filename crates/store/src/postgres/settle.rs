use std::collections::{BTreeMap, HashSet};

use sqlx::PgConnection;

use super::clock;
use super::writer::Statement;
use crate::error::LedgerError;
use crate::{AttemptRecord, Settled, Settlement};

/// Settles jobs, and records the attempts. Run again after its answer was lost, it finds the lease lost:
/// the job has ended as it was to end.
pub(super) struct Settle;

impl Statement for Settle {
    type Operation = Settlement;
    type Answer = Settled;

    // From the array into the table by index, whatever the planner thinks of the table's size.
    const SETTINGS: &'static [(&'static str, &'static str)] = &[
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        ("enable_seqscan", "off"),
    ];

    async fn run(
        connection: &mut PgConnection,
        settlements: &[Settlement],
    ) -> Result<Vec<Result<Settled, LedgerError>>, sqlx::Error> {
        // Of two with one lease the first counts. In order of id, so that two processes wait for each
        // other and not in a circle.
        let mut firsts = BTreeMap::new();
        for (place, settlement) in settlements.iter().enumerate() {
            firsts
                .entry((settlement.lease.job, settlement.lease.token))
                .or_insert((place, settlement));
        }
        let firsts: Vec<_> = firsts.into_values().collect();
        let written = write(connection, &firsts).await?;
        let answers = (0_i64..).take(settlements.len()).map(|place| {
            Ok(if written.contains(&place) {
                Settled::Written
            } else {
                Settled::LeaseLost
            })
        });
        Ok(answers.collect())
    }
}

/// Ends the tries whose lease holds, and returns their places.
async fn write(
    connection: &mut PgConnection,
    settlements: &[(usize, &Settlement)],
) -> Result<HashSet<i64>, sqlx::Error> {
    let places = settlements
        .iter()
        .map(|(place, _)| i64::try_from(*place).unwrap_or(i64::MAX));
    let all = || settlements.iter().map(|(_, settlement)| settlement);
    let changes: Vec<_> = all().map(|settlement| settlement.change()).collect();
    let attempts: Vec<Option<&AttemptRecord>> = all().map(|settlement| settlement.attempt.as_ref()).collect();
    let attempt = || attempts.iter().copied();

    let written: Vec<i64> = sqlx::query_scalar(concat!(
        "with ",
        clock!(),
        ", ending as (
            select *
            from unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], $6::integer[],
                    $7::text[], $8::text[], $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::text[],
                    $14::integer[], $15::text[], $16::text[])
                as ending (place, job_id, token, state, wait, spent, dead_reason, last_error, started_at,
                    duration_ms, outcome, error_class, error, http_status, response, worker), clock
         ), settled as (
            update jobs set
                state = ending.state,
                run_at = coalesce(ending.now + ending.wait, run_at),
                finished_at = case when ending.wait is null then ending.now end,
                attempts = attempts + ending.spent,
                attempts_total = attempts_total + ending.spent,
                -- A worker that wrote an ending was not taken down.
                crashes = case when ending.spent > 0 then 0 else crashes end,
                dead_reason = ending.dead_reason,
                error_class = coalesce(ending.error_class, jobs.error_class),
                last_error = coalesce(ending.last_error, jobs.last_error),
                lease_until = null,
                relay_at = null
            from ending
            where jobs.id = ending.job_id and jobs.token = ending.token and jobs.state = 'running'
            returning ending.*, attempts_total
         ), recorded as (
            insert into attempts (job_id, number, started_at, duration_ms, outcome, error_class, error,
                http_status, response, worker)
            select job_id, attempts_total, started_at, duration_ms, outcome, error_class, error, http_status,
                response, worker
            from settled where started_at is not null
         )
         select place from settled"
    ))
    .bind(places.collect::<Vec<_>>())
    .bind(all().map(|settlement| settlement.lease.job.to_string()).collect::<Vec<_>>())
    .bind(all().map(|settlement| settlement.lease.token).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.state).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.wait).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.spent).collect::<Vec<_>>())
    .bind(changes.iter().map(|change| change.dead_reason).collect::<Vec<_>>())
    .bind(all().map(|settlement| settlement.error.as_deref()).collect::<Vec<_>>())
    .bind(attempt().map(|attempt| Some(attempt?.started_at.as_millis())).collect::<Vec<_>>())
    .bind(attempt().map(|attempt| Some(duration_ms(attempt?))).collect::<Vec<_>>())
    .bind(attempt().map(|attempt| Some(&*attempt?.outcome)).collect::<Vec<_>>())
    .bind(attempt().map(|attempt| attempt?.error_class.as_deref()).collect::<Vec<_>>())
    .bind(attempt().map(|attempt| attempt?.error.as_deref()).collect::<Vec<_>>())
    .bind(attempt().map(|attempt| attempt?.http_status.map(i32::from)).collect::<Vec<_>>())
    .bind(attempt().map(|attempt| attempt?.response.as_deref()).collect::<Vec<_>>())
    .bind(attempt().map(|attempt| Some(&*attempt?.worker)).collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    Ok(written.into_iter().collect())
}

fn duration_ms(attempt: &AttemptRecord) -> i64 {
    i64::try_from(attempt.duration_ms).unwrap_or(i64::MAX)
}
