use posthaste_jobs::{JobId, Queue};

use super::{Sqlite, now};
use crate::Due;
use crate::error::LedgerError;
use crate::job::DueColumns;

impl Sqlite {
    pub(crate) async fn unrelayed(&self, limit: u32) -> Result<Vec<Due>, LedgerError> {
        let rows: Vec<DueColumns> = sqlx::query_as(concat!(
            "select id, queue, run_at - ",
            now!(),
            ", relay_at from jobs
             where relay_at <= ",
            now!(),
            " and finished_at is null and state <> 'running'
             order by relay_at limit ?1"
        ))
        .bind(limit)
        .fetch_all(&self.readers)
        .await?;
        rows.into_iter().map(Due::read).collect()
    }

    pub(crate) async fn unfinished(
        &self,
        queue: Queue,
        after: Option<JobId>,
        limit: u32,
    ) -> Result<Vec<Due>, LedgerError> {
        let rows: Vec<DueColumns> = sqlx::query_as(concat!(
            "select id, queue, iif(state = 'running', lease_until, run_at) - ",
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
        rows.into_iter().map(Due::read).collect()
    }

    pub(crate) async fn epoch(&self, queue: Queue) -> Result<Option<String>, LedgerError> {
        let epoch = sqlx::query_scalar("select epoch from queue_epochs where queue = ?1")
            .bind(queue.as_str())
            .fetch_optional(&self.readers)
            .await?;
        Ok(epoch)
    }
}
