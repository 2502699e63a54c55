//! What holds for a queue as a whole.

use std::time::Duration;

use posthaste_jobs::Queue;

use super::{Postgres, clock};
use crate::Standing;
use crate::error::LedgerError;
use crate::standing::StandingColumns;
use crate::value::millis;

impl Postgres {
    pub(crate) async fn epoch(&self, queue: Queue) -> Result<Option<String>, LedgerError> {
        let epoch: Option<Option<String>> = sqlx::query_scalar("select epoch from queues where name = $1")
            .bind(queue.as_str())
            .fetch_optional(&self.pool)
            .await?;
        Ok(epoch.flatten())
    }

    pub(crate) async fn set_epoch(&self, queue: Queue, epoch: String) -> Result<(), LedgerError> {
        sqlx::query(
            "insert into queues (name, epoch) values ($1, $2)
             on conflict (name) do update set epoch = excluded.epoch",
        )
        .bind(queue.as_str())
        .bind(epoch)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    pub(crate) async fn take_sweep(&self, queue: Queue, every: Duration) -> Result<bool, LedgerError> {
        let taken = sqlx::query(concat!(
            "with ",
            clock!(),
            "insert into queues (name, swept_at) select $1, now from clock
             on conflict (name) do update set swept_at = excluded.swept_at
             where queues.swept_at is null or queues.swept_at <= excluded.swept_at - $2"
        ))
        .bind(queue.as_str())
        .bind(millis(every))
        .execute(&self.pool)
        .await?;
        Ok(taken.rows_affected() > 0)
    }

    pub(crate) async fn set_paused(&self, queue: Queue, paused: bool) -> Result<bool, LedgerError> {
        let change = if paused {
            sqlx::query(concat!(
                "with ",
                clock!(),
                "insert into queues (name, paused_at) select $1, now from clock
                 on conflict (name) do update set paused_at = excluded.paused_at
                 where queues.paused_at is null"
            ))
        } else {
            sqlx::query("update queues set paused_at = null where name = $1 and paused_at is not null")
        };
        let changed = change.bind(queue.as_str()).execute(&self.pool).await?;
        Ok(changed.rows_affected() > 0)
    }

    pub(crate) async fn is_paused(&self, queue: Queue) -> Result<bool, LedgerError> {
        Ok(self.paused_at(queue).await?.is_some())
    }

    async fn paused_at(&self, queue: Queue) -> Result<Option<i64>, LedgerError> {
        let paused_at: Option<Option<i64>> =
            sqlx::query_scalar("select paused_at from queues where name = $1")
                .bind(queue.as_str())
                .fetch_optional(&self.pool)
                .await?;
        Ok(paused_at.flatten())
    }

    pub(crate) async fn standing(&self, queue: Queue) -> Result<Standing, LedgerError> {
        let rows: Vec<StandingColumns> = sqlx::query_as(concat!(
            "with ",
            clock!(),
            "select state, count(*), (select now from clock) - min(run_at) from jobs
             where finished_at is null and queue = $1 group by state
             union all
             select 'dead', count(*), 0::bigint from jobs
             where dead_reason is not null and state = 'dead' and queue = $1"
        ))
        .bind(queue.as_str())
        .fetch_all(&self.pool)
        .await?;
        Ok(Standing::read(self.paused_at(queue).await?, rows))
    }
}
