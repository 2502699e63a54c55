use std::time::Duration;

use posthaste_jobs::{JobId, Queue};

use super::{Postgres, clock, parse_all};
use crate::error::LedgerError;
use crate::job::{DueColumns, due_columns};
use crate::value::millis;
use crate::{Due, Lease};

impl Postgres {
    /// Returns the jobs whose leases are still held.
    pub(crate) async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, LedgerError> {
        let (ids, tokens) = columns(leases);
        let held = sqlx::query_scalar(concat!(
            "with ",
            clock!(),
            "update jobs set lease_until = (select now from clock) + $3
             from unnest($1::text[], $2::bigint[]) as held (id, token)
             where jobs.id = held.id and jobs.token = held.token and jobs.state = 'running'
             returning jobs.id"
        ))
        .bind(ids)
        .bind(tokens)
        .bind(millis(lease))
        .fetch_all(&self.pool)
        .await?;
        parse_all(held)
    }

    /// The job is no longer running, so a late settlement of who gave it back changes nothing; the next
    /// claim has another token.
    pub(crate) async fn give_back(&self, leases: &[Lease]) -> Result<(), LedgerError> {
        let (ids, tokens) = columns(leases);
        sqlx::query(concat!(
            "with ",
            clock!(),
            "update jobs set state = 'queued', lease_until = null, run_at = (select now from clock),
                relay_at = (select now from clock) + 3000
             from unnest($1::text[], $2::bigint[]) as held (id, token)
             where jobs.id = held.id and jobs.token = held.token and jobs.state = 'running'"
        ))
        .bind(ids)
        .bind(tokens)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    pub(crate) async fn unrelayed(&self, queue: Queue, limit: u32) -> Result<Vec<Due>, LedgerError> {
        let rows: Vec<DueColumns> = sqlx::query_as(concat!(
            "with ",
            clock!(),
            "select",
            due_columns!(),
            "run_at - (select now from clock), relay_at from jobs
             where relay_at <= (select now from clock) and queue = $1 and finished_at is null
                and state <> 'running'
             order by relay_at limit $2"
        ))
        .bind(queue.as_str())
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await?;
        Ok(Due::read_all(rows))
    }

    pub(crate) async fn relayed(&self, relayed: &[Due]) -> Result<(), LedgerError> {
        let mut relayed = relayed.to_vec();
        relayed.sort_unstable_by_key(|due| due.job);
        let (ids, read): (Vec<String>, Vec<Option<i64>>) = relayed
            .iter()
            .map(|due| (due.job.to_string(), due.relay_at))
            .unzip();
        sqlx::query(
            "update jobs set relay_at = null
             from unnest($1::text[], $2::bigint[]) as relayed (id, relay_at)
             where jobs.id = relayed.id and jobs.relay_at = relayed.relay_at",
        )
        .bind(ids)
        .bind(read)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    pub(crate) async fn unfinished(
        &self,
        queue: Queue,
        after: Option<JobId>,
        limit: u32,
    ) -> Result<Vec<Due>, LedgerError> {
        let rows: Vec<DueColumns> = sqlx::query_as(concat!(
            "with ",
            clock!(),
            "select",
            due_columns!(),
            "case state when 'running' then lease_until else run_at end - (select now from clock),
                relay_at
             from jobs
             where finished_at is null and queue = $1 and id > $2
             order by id limit $3"
        ))
        .bind(queue.as_str())
        .bind(after.map(|id| id.to_string()).unwrap_or_default())
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await?;
        Ok(Due::read_all(rows))
    }
}

/// Returns ids and tokens, in order of id: two processes wait for each other and not in a circle.
fn columns(leases: &[Lease]) -> (Vec<String>, Vec<i64>) {
    let mut leases = leases.to_vec();
    leases.sort_unstable_by_key(|lease| lease.job);
    leases
        .iter()
        .map(|lease| (lease.job.to_string(), lease.token))
        .unzip()
}
