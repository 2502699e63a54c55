use bytes::Bytes;
use posthaste_jobs::{EventId, JobId};
use sqlx::{Decode, Encode, Executor, FromRow, IntoArguments, Pool, QueryBuilder, Type};

use crate::error::LedgerError;
use crate::event::{ListedEvent, listed_events};
use crate::filter::Dialect;
use crate::job::listed_jobs;
use crate::settlement::ListedAttempt;
use crate::{AttemptRecord, EventFilter, EventRow, JobFilter, JobRow};

/// Reads what is listed and shown. The statements are the same for both databases.
pub(crate) struct Reader<'p, DB: Dialect>(pub(crate) &'p Pool<DB>);

impl<DB: Dialect> Reader<'_, DB>
where
    DB::Arguments: IntoArguments<DB>,
    for<'c> &'c Pool<DB>: Executor<'c, Database = DB>,
    String: for<'q> Encode<'q, DB> + Type<DB>,
    &'static str: for<'q> Encode<'q, DB> + Type<DB>,
    i64: for<'q> Encode<'q, DB> + for<'r> Decode<'r, DB> + Type<DB>,
    (i64,): for<'r> FromRow<'r, DB::Row>,
    (Vec<u8>, Vec<u8>): for<'r> FromRow<'r, DB::Row>,
    ListedAttempt: for<'r> FromRow<'r, DB::Row>,
    ListedEvent: for<'r> FromRow<'r, DB::Row>,
    JobRow: for<'r> FromRow<'r, DB::Row>,
{
    pub(crate) async fn events(
        &self,
        filter: &EventFilter,
        before: Option<EventId>,
        limit: u32,
    ) -> Result<Vec<EventRow>, LedgerError> {
        let mut query = QueryBuilder::new(listed_events!());
        filter.push(&mut query);
        if let Some(before) = before {
            query.push(" and events.id < ").push_bind(before.to_string());
        }
        query
            .push(" order by events.id desc limit ")
            .push_bind(i64::from(limit));
        let rows: Vec<ListedEvent> = query.build_query_as().fetch_all(self.0).await?;
        rows.into_iter().map(EventRow::read).collect()
    }

    pub(crate) async fn event(&self, id: EventId) -> Result<Option<EventRow>, LedgerError> {
        let row: Option<ListedEvent> = sqlx::query_as(concat!(listed_events!(), "where events.id = $1"))
            .bind(id.to_string())
            .fetch_optional(self.0)
            .await?;
        row.map(EventRow::read).transpose()
    }

    /// Returns the headers and the body of an event.
    pub(crate) async fn content(&self, id: EventId) -> Result<Option<(Bytes, Bytes)>, LedgerError> {
        let row: Option<(Vec<u8>, Vec<u8>)> =
            sqlx::query_as("select headers, body from events where id = $1")
                .bind(id.to_string())
                .fetch_optional(self.0)
                .await?;
        Ok(row.map(|(headers, body)| (headers.into(), body.into())))
    }

    pub(crate) async fn jobs(
        &self,
        filter: &JobFilter,
        before: Option<JobId>,
        limit: u32,
    ) -> Result<Vec<JobRow>, LedgerError> {
        let mut query = QueryBuilder::new(listed_jobs!());
        filter.push(&mut query);
        if let Some(before) = before {
            query.push(" and jobs.id < ").push_bind(before.to_string());
        }
        query
            .push(" order by jobs.id desc limit ")
            .push_bind(i64::from(limit));
        Ok(query.build_query_as().fetch_all(self.0).await?)
    }

    pub(crate) async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, LedgerError> {
        let rows: Vec<ListedAttempt> = sqlx::query_as(
            "select number, started_at, duration_ms, outcome, error_class, error, http_status, response, worker
             from attempts where job_id = $1 order by number",
        )
        .bind(id.to_string())
        .fetch_all(self.0)
        .await?;
        Ok(rows.into_iter().map(AttemptRecord::read).collect())
    }

    pub(crate) async fn count(&self, filter: &JobFilter) -> Result<u64, LedgerError> {
        let mut query =
            QueryBuilder::new("select count(*) from jobs left join events on events.id = jobs.event_id");
        filter.push(&mut query);
        let count: i64 = query.build_query_scalar().fetch_one(self.0).await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }
}
