use posthaste_jobs::{EventId, JobId, Kind, Queue, State, Timestamp};
use sqlx::{Database, Encode, QueryBuilder, Type};

use crate::value::text;

/// Which jobs. All that are given must hold.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Only these; empty = any.
    pub ids: Vec<JobId>,
    /// Any of these; empty = any.
    pub states: Vec<State>,
    /// In this queue.
    pub queue: Option<Queue>,
    /// Of this kind.
    pub kind: Option<Kind>,
    /// From this source.
    pub source: Option<String>,
    /// To this endpoint.
    pub endpoint: Option<String>,
    /// About this event.
    pub event: Option<EventId>,
    /// Error class equals, or error text contains, case ignored.
    pub error: Option<String>,
    /// Created (or, for dead letters, ended) at or after.
    pub since: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
}

/// Which events. All that are given must hold.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// From this source.
    pub source: Option<String>,
    /// Exactly this type.
    pub event_type: Option<String>,
    /// The provider's id.
    pub provider_id: Option<String>,
    /// Only those with no job.
    pub unrouted: bool,
    /// At or after.
    pub since: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
}

/// Where the two databases use another word for the same thing.
pub(crate) trait Dialect: Database {
    /// The function that says where in a text another one begins; 0: nowhere.
    const POSITION: &'static str;
}

impl Dialect for sqlx::Sqlite {
    const POSITION: &'static str = "instr";
}

impl Dialect for sqlx::Postgres {
    const POSITION: &'static str = "strpos";
}

impl JobFilter {
    /// Adds the conditions to a select from `jobs` and its `events`. Values are bound, never written.
    pub(crate) fn push<DB>(&self, query: &mut QueryBuilder<DB>)
    where
        DB: Dialect,
        String: for<'q> Encode<'q, DB> + Type<DB>,
        &'static str: for<'q> Encode<'q, DB> + Type<DB>,
        i64: for<'q> Encode<'q, DB> + Type<DB>,
    {
        query.push(" where true");
        if !self.ids.is_empty() {
            push_any(query, "jobs.id", self.ids.iter().map(ToString::to_string));
        }
        if !self.states.is_empty() {
            push_any(
                query,
                "jobs.state",
                self.states.iter().map(|state| state.as_str()),
            );
            // What the states imply, in the words of the partial indexes.
            if self.states == [State::Dead] {
                query.push(" and jobs.dead_reason is not null");
            }
            if self.states.iter().all(|state| state.is_unfinished()) {
                query.push(" and jobs.finished_at is null");
            }
        }
        push_equal(query, "jobs.queue", self.queue.map(Queue::as_str));
        push_equal(query, "jobs.kind", self.kind.map(Kind::as_str));
        push_equal(query, "events.source", self.source.clone().map(text));
        push_equal(query, "jobs.endpoint", self.endpoint.clone().map(text));
        push_equal(query, "jobs.event_id", self.event.map(|id| id.to_string()));
        if let Some(error) = self.error.clone().map(text) {
            query.push(" and (jobs.error_class = ").push_bind(error.clone());
            query.push(format_args!(
                " or {}(lower(jobs.last_error), lower(",
                DB::POSITION
            ));
            query.push_bind(error).push(")) > 0)");
        }
        let moment = "case jobs.state when 'dead' then jobs.finished_at else jobs.created_at end";
        push_between(query, moment, self.since, self.until);
    }
}

impl EventFilter {
    /// Adds the conditions to a select from `events`. Values are bound, never written.
    pub(crate) fn push<DB>(&self, query: &mut QueryBuilder<DB>)
    where
        DB: Dialect,
        String: for<'q> Encode<'q, DB> + Type<DB>,
        i64: for<'q> Encode<'q, DB> + Type<DB>,
    {
        query.push(" where true");
        push_equal(query, "events.source", self.source.clone().map(text));
        push_equal(query, "events.event_type", self.event_type.clone().map(text));
        push_equal(query, "events.provider_id", self.provider_id.clone().map(text));
        if self.unrouted {
            query.push(" and not exists (select 1 from jobs where jobs.event_id = events.id)");
        }
        push_between(query, "events.received_at", self.since, self.until);
    }
}

fn push_any<DB, T>(query: &mut QueryBuilder<DB>, column: &str, values: impl Iterator<Item = T>)
where
    DB: Database,
    T: for<'q> Encode<'q, DB> + Type<DB>,
{
    query.push(format_args!(" and {column} in ("));
    let mut list = query.separated(", ");
    for value in values {
        list.push_bind(value);
    }
    list.push_unseparated(")");
}

fn push_equal<DB, T>(query: &mut QueryBuilder<DB>, column: &str, value: Option<T>)
where
    DB: Database,
    T: for<'q> Encode<'q, DB> + Type<DB>,
{
    if let Some(value) = value {
        query.push(format_args!(" and {column} = ")).push_bind(value);
    }
}

fn push_between<DB>(
    query: &mut QueryBuilder<DB>,
    moment: &str,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
) where
    DB: Database,
    i64: for<'q> Encode<'q, DB> + Type<DB>,
{
    if let Some(since) = since {
        query
            .push(format_args!(" and {moment} >= "))
            .push_bind(since.as_millis());
    }
    if let Some(until) = until {
        query
            .push(format_args!(" and {moment} < "))
            .push_bind(until.as_millis());
    }
}
