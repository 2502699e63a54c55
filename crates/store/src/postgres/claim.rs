use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use futures::TryStreamExt as _;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use super::clock;
use super::writer::Statement;
use crate::Claim;
use crate::claim::{
    BODY_ALONG, CRASH_BUDGET, ClaimRequest, ClaimedEvent, ClaimedJob, Company, EARLY, Standing, Verdict, lost,
};
use crate::error::LedgerError;
use crate::value::millis;

/// Claims jobs, and reads the events they are about. Run again after its answer was lost, it finds the
/// jobs in progress, and they run once that lease has ended.
pub(super) struct ClaimJobs;

impl Statement for ClaimJobs {
    type Operation = ClaimRequest;
    type Answer = Verdict;

    // A job that nobody knows to be theirs waits for its lease to end, and is charged a crash.
    const NEEDS_ITS_CALLER: bool = true;

    const SETTINGS: &'static [(&'static str, &'static str)] = &[
        // The server need not flush a claim to its disk. If it loses the last ones, the jobs are as if
        // never claimed and run again, as after any crash; and a settlement, which is flushed, takes the
        // claim before it along.
        ("synchronous_commit", "off"),
        // From the array into the table by index, whatever the planner thinks of the table's size.
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        ("enable_seqscan", "off"),
    ];

    async fn run(
        connection: &mut PgConnection,
        requests: &[ClaimRequest],
    ) -> Result<Vec<Result<Verdict, LedgerError>>, sqlx::Error> {
        let ids: Vec<String> = requests.iter().map(|request| request.job.to_string()).collect();
        // Of several claims of one job the first may get it. In order of id, so that two processes wait
        // for each other and not in a circle.
        let mut firsts = BTreeMap::new();
        for (id, request) in ids.iter().zip(requests) {
            firsts.entry(id.as_str()).or_insert(request);
        }
        let mut jobs = take(connection, &firsts).await?;
        let started: Vec<_> = ids.iter().map(|id| jobs.remove(id)).collect();
        let left: Vec<&String> = ids
            .iter()
            .zip(&started)
            .filter(|(_, job)| job.is_none())
            .map(|(id, _)| id)
            .collect();
        let standing = if left.is_empty() {
            HashMap::new()
        } else {
            read_standing(connection, &left).await?
        };

        let verdicts =
            ids.iter()
                .zip(requests)
                .zip(started)
                .map(|((id, request), job)| match (job, standing.get(id)) {
                    (Some(job), _) => job.verdict(),
                    (None, Some(standing)) => standing.refuse(request).map(Verdict::from),
                    (None, None) => Ok(Claim::Unknown.into()),
                });
        Ok(verdicts.collect())
    }
}

/// Whether a job that is due was left by its worker: whoever asks anew has not been lost.
macro_rules! is_lost {
    () => {
        "(jobs.state = 'running' and jobs.worker is distinct from request.worker)"
    };
}

/// How many workers are lost with a job, the last of them included.
macro_rules! crashes {
    () => {
        concat!("(crashes + ", is_lost!(), "::integer)")
    };
}

/// Whether it has taken too many of them down.
macro_rules! is_crashed {
    () => {
        concat!(crashes!(), " >= $4")
    };
}

/// Takes the jobs that are due, and those whose worker was lost; the latter become dead letters once
/// their crash budget is spent, and are left to who runs nothing else when one more would spend it.
async fn take(
    connection: &mut PgConnection,
    requests: &BTreeMap<&str, &ClaimRequest>,
) -> Result<HashMap<String, ClaimedJob>, sqlx::Error> {
    let ids: Vec<&str> = requests.keys().copied().collect();
    let workers: Vec<&str> = requests.values().map(|request| &*request.worker).collect();
    let leases: Vec<i64> = requests.values().map(|request| millis(request.lease)).collect();
    let alone: Vec<bool> = requests
        .values()
        .map(|request| request.company == Company::Alone)
        .collect();
    let mut rows = sqlx::query(concat!(
        "with ",
        clock!(),
        ", request as (
            select request.*, clock.now
            from unnest($1::text[], $2::text[], $3::bigint[], $7::boolean[])
                as request (id, worker, lease, alone), clock
         ), claimed as (
            update jobs set
                state = case when ",
        is_crashed!(),
        " then 'dead' else 'running' end,
                finished_at = case when ",
        is_crashed!(),
        " then request.now end,
                dead_reason = case when ",
        is_crashed!(),
        " then 'crashed' end,
                relay_at = case when ",
        is_crashed!(),
        " then null else relay_at end,
                lease_until = case when ",
        is_crashed!(),
        " then null else request.now + request.lease end,
                worker = case when ",
        is_crashed!(),
        " then jobs.worker else request.worker end,
                crashes = ",
        crashes!(),
        ",
                error_class = case when ",
        is_lost!(),
        " then 'crashed' else error_class end,
                last_error = case when ",
        is_lost!(),
        " then 'worker ' || jobs.worker || ",
        lost!(),
        " else last_error end,
                token = token + 1
            from request
            where jobs.id = request.id and (
                jobs.state in ('queued', 'scheduled', 'retrying', 'parked') and run_at <= request.now + $5
                or jobs.state = 'running' and lease_until < request.now
            ) and (request.alone or ",
        crashes!(),
        " <> $4 - 1)
            returning jobs.id, state, kind, payload, attempts, replays, token, event_id
         )
         select claimed.id, claimed.state, claimed.kind, claimed.payload, claimed.attempts, claimed.replays,
            claimed.token, events.id, events.source, events.event_type, events.received_at, events.headers,
            case when octet_length(events.body) <= $6 then events.body end
         from claimed left join events on events.id = claimed.event_id"
    ))
    .bind(ids)
    .bind(workers)
    .bind(leases)
    .bind(CRASH_BUDGET)
    .bind(EARLY)
    .bind(BODY_ALONG)
    .bind(alone)
    .fetch(connection);
    let mut jobs = HashMap::with_capacity(requests.len());
    while let Some(row) = rows.try_next().await? {
        let job = read(&row)?;
        jobs.insert(job.id.clone(), job);
    }
    Ok(jobs)
}

fn read(row: &PgRow) -> Result<ClaimedJob, sqlx::Error> {
    let event = match row.try_get(7)? {
        None => None,
        Some(id) => Some(ClaimedEvent {
            id,
            source: row.try_get(8)?,
            event_type: row.try_get(9)?,
            received_at: row.try_get(10)?,
            headers: Bytes::copy_from_slice(row.try_get(11)?),
            body: row.try_get::<Option<&[u8]>, _>(12)?.map(Bytes::copy_from_slice),
        }),
    };
    Ok(ClaimedJob {
        id: row.try_get(0)?,
        state: row.try_get(1)?,
        kind: row.try_get(2)?,
        payload: row.try_get(3)?,
        attempts: row.try_get(4)?,
        replays: row.try_get(5)?,
        token: row.try_get(6)?,
        event,
    })
}

/// Reads where jobs stand.
async fn read_standing(
    connection: &mut PgConnection,
    ids: &[&String],
) -> Result<HashMap<String, Standing>, sqlx::Error> {
    let rows: Vec<(String, String, i64, i32, Option<String>)> = sqlx::query_as(concat!(
        "with ",
        clock!(),
        "select id, state, case state when 'running' then lease_until else run_at end - (select now from clock),
            crashes, worker
         from jobs where id = any($1)"
    ))
    .bind(ids)
    .fetch_all(connection)
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
