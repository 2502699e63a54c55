use posthaste_jobs::{EventId, JobId};
use sqlx::QueryBuilder;

use super::{Postgres, clock, parse_all};
use crate::error::{LedgerError, NoSuchEvent};
use crate::value::millis;
use crate::{JobFilter, NewJob};

impl Postgres {
    pub(crate) async fn replay(&self, filter: &JobFilter, limit: u32) -> Result<Vec<JobId>, LedgerError> {
        let mut query = QueryBuilder::new(concat!(
            "with ",
            clock!(),
            "update jobs set state = 'queued', attempts = 0, crashes = 0, replays = replays + 1,
                finished_at = null, dead_reason = null, run_at = (select now from clock),
                relay_at = (select now from clock)
             where id in (select jobs.id from jobs left join events on events.id = jobs.event_id"
        ));
        filter.push(&mut query);
        query.push(" and jobs.state in ('dead', 'discarded', 'cancelled') order by jobs.id limit ");
        query
            .push_bind(i64::from(limit))
            .push(" for update of jobs) returning id");
        parse_all(query.build_query_scalar().fetch_all(&self.pool).await?)
    }

    pub(crate) async fn discard(&self, filter: &JobFilter, limit: u32) -> Result<Vec<JobId>, LedgerError> {
        let mut query = QueryBuilder::new(
            "update jobs set state = 'discarded'
             where id in (select jobs.id from jobs left join events on events.id = jobs.event_id",
        );
        filter.push(&mut query);
        query.push(" and jobs.state = 'dead' order by jobs.id limit ");
        query
            .push_bind(i64::from(limit))
            .push(" for update of jobs) returning id");
        parse_all(query.build_query_scalar().fetch_all(&self.pool).await?)
    }

    /// `relay_at` is now: whoever adds them reaches no queue.
    pub(crate) async fn add_jobs(&self, event: EventId, jobs: Vec<NewJob>) -> Result<(), LedgerError> {
        let added = sqlx::query(concat!(
            "with ",
            clock!(),
            "insert into jobs (id, event_id, kind, queue, payload, endpoint, state, priority, run_at, replays,
                created_at, relay_at)
             select owed.id, events.id, kind, queue, payload, endpoint, state, priority,
                (select now from clock) + wait, 1, (select now from clock), (select now from clock)
             from events,
                unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                    $9::bigint[])
                as owed (id, kind, queue, payload, endpoint, state, priority, wait)
             where events.id = $1"
        ))
        .bind(event.to_string())
        .bind(jobs.iter().map(|job| job.id.to_string()).collect::<Vec<_>>())
        .bind(jobs.iter().map(|job| job.kind.as_str()).collect::<Vec<_>>())
        .bind(
            jobs.iter()
                .map(|job| job.kind.queue().as_str())
                .collect::<Vec<_>>(),
        )
        .bind(jobs.iter().map(|job| &*job.payload).collect::<Vec<_>>())
        .bind(jobs.iter().map(|job| job.endpoint.as_deref()).collect::<Vec<_>>())
        .bind(jobs.iter().map(|job| job.state().as_str()).collect::<Vec<_>>())
        .bind(jobs.iter().map(|job| job.priority.as_str()).collect::<Vec<_>>())
        .bind(jobs.iter().map(|job| millis(job.wait)).collect::<Vec<_>>())
        .execute(&self.pool)
        .await?;
        if added.rows_affected() == 0 && !jobs.is_empty() {
            return Err(NoSuchEvent(event).into());
        }
        Ok(())
    }
}
