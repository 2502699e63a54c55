use posthaste_jobs::{JobId, Queue};

use super::{Sqlite, now};
use crate::Due;
use crate::error::LedgerError;
use crate::job::{DueColumns, due_columns};

impl Sqlite {
    pub(crate) async fn unrelayed(&self, queue: Queue, limit: u32) -> Result<Vec<Due>, LedgerError> {
        let rows: Vec<DueColumns> = sqlx::query_as(concat!(
            "select",
            due_columns!(),
            "run_at - ",
            now!(),
            ", relay_at from jobs
             where relay_at <= ",
            now!(),
            " and queue = ?1 and finished_at is null and state <> 'running'
             order by relay_at limit ?2"
        ))
        .bind(queue.as_str())
        .bind(limit)
        .fetch_all(&self.readers)
        .await?;
        Ok(Due::read_all(rows))
    }

    pub(crate) async fn unfinished(
        &self,
        queue: Queue,
        after: Option<JobId>,
        limit: u32,
    ) -> Result<Vec<Due>, LedgerError> {
        let rows: Vec<DueColumns> = sqlx::query_as(concat!(
            "select",
            due_columns!(),
            "iif(state = 'running', lease_until, run_at) - ",
            now!(),
            ", relay_at from jobs
             where finished_at is null and queue = ?1 and id > ?2
             order by id limit ?3"
        ))
        .bind(queue.as_str())
        .bind(after.map(|id| id.to_string()).unwrap_or_default())
        .bind(limit)
        .fetch_all(&self.readers)
        .await?;
        Ok(Due::read_all(rows))
    }
}
