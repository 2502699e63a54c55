//! What holds for a queue as a whole.

use std::time::Duration;

use posthaste_jobs::Queue;
use sqlx::SqliteConnection;

use super::{Answer, Operation, Sqlite, now};
use crate::Standing;
use crate::error::LedgerError;
use crate::standing::StandingColumns;
use crate::value::millis;

/// A write about a queue. Answers whether it changed anything.
pub(super) enum Change {
    SetEpoch { queue: Queue, epoch: String },
    TakeSweep { queue: Queue, every: Duration },
    SetPaused { queue: Queue, paused: bool },
}

impl Sqlite {
    pub(crate) async fn epoch(&self, queue: Queue) -> Result<Option<String>, LedgerError> {
        let epoch: Option<Option<String>> = sqlx::query_scalar("select epoch from queues where name = ?1")
            .bind(queue.as_str())
            .fetch_optional(&self.readers)
            .await?;
        Ok(epoch.flatten())
    }

    pub(crate) async fn set_epoch(&self, queue: Queue, epoch: String) -> Result<(), LedgerError> {
        self.change_queue(Change::SetEpoch { queue, epoch })
            .await
            .map(drop)
    }

    pub(crate) async fn take_sweep(&self, queue: Queue, every: Duration) -> Result<bool, LedgerError> {
        self.change_queue(Change::TakeSweep { queue, every }).await
    }

    pub(crate) async fn set_paused(&self, queue: Queue, paused: bool) -> Result<bool, LedgerError> {
        self.change_queue(Change::SetPaused { queue, paused }).await
    }

    pub(crate) async fn is_paused(&self, queue: Queue) -> Result<bool, LedgerError> {
        Ok(self.paused_at(queue).await?.is_some())
    }

    async fn paused_at(&self, queue: Queue) -> Result<Option<i64>, LedgerError> {
        let paused_at: Option<Option<i64>> =
            sqlx::query_scalar("select paused_at from queues where name = ?1")
                .bind(queue.as_str())
                .fetch_optional(&self.readers)
                .await?;
        Ok(paused_at.flatten())
    }

    pub(crate) async fn standing(&self, queue: Queue) -> Result<Standing, LedgerError> {
        let rows: Vec<StandingColumns> = sqlx::query_as(concat!(
            "select state, count(*), ",
            now!(),
            " - min(run_at) from jobs
             where finished_at is null and queue = ?1 group by state
             union all
             select 'dead', count(*), 0 from jobs
             where dead_reason is not null and state = 'dead' and queue = ?1"
        ))
        .bind(queue.as_str())
        .fetch_all(&self.readers)
        .await?;
        Ok(Standing::read(self.paused_at(queue).await?, rows))
    }

    async fn change_queue(&self, change: Change) -> Result<bool, LedgerError> {
        match self.writer.write(Operation::Queue(change)).await? {
            Answer::Queue(changed) => Ok(changed),
            other => other.mistaken(),
        }
    }
}

pub(super) async fn change(transaction: &mut SqliteConnection, change: &Change) -> Result<bool, sqlx::Error> {
    match change {
        Change::SetEpoch { queue, epoch } => set_epoch(transaction, *queue, epoch).await,
        Change::TakeSweep { queue, every } => take_sweep(transaction, *queue, millis(*every)).await,
        Change::SetPaused { queue, paused } => set_paused(transaction, *queue, *paused).await,
    }
}

async fn set_epoch(
    transaction: &mut SqliteConnection,
    queue: Queue,
    epoch: &str,
) -> Result<bool, sqlx::Error> {
    let changed = sqlx::query(
        "insert into queues (name, epoch) values (?1, ?2)
         on conflict (name) do update set epoch = excluded.epoch",
    )
    .bind(queue.as_str())
    .bind(epoch)
    .execute(transaction)
    .await?;
    Ok(changed.rows_affected() > 0)
}

async fn take_sweep(
    transaction: &mut SqliteConnection,
    queue: Queue,
    every: i64,
) -> Result<bool, sqlx::Error> {
    let changed = sqlx::query(concat!(
        "insert into queues (name, swept_at) values (?1, ",
        now!(),
        ") on conflict (name) do update set swept_at = excluded.swept_at
         where queues.swept_at is null or queues.swept_at <= excluded.swept_at - ?2"
    ))
    .bind(queue.as_str())
    .bind(every)
    .execute(transaction)
    .await?;
    Ok(changed.rows_affected() > 0)
}

async fn set_paused(
    transaction: &mut SqliteConnection,
    queue: Queue,
    paused: bool,
) -> Result<bool, sqlx::Error> {
    let change = if paused {
        sqlx::query(concat!(
            "insert into queues (name, paused_at) values (?1, ",
            now!(),
            ") on conflict (name) do update set paused_at = excluded.paused_at
             where queues.paused_at is null"
        ))
    } else {
        sqlx::query("update queues set paused_at = null where name = ?1 and paused_at is not null")
    };
    let changed = change.bind(queue.as_str()).execute(transaction).await?;
    Ok(changed.rows_affected() > 0)
}
