-- What came in (events), what we owe for it (jobs) and what we tried (attempts).
--
-- The same tables as on PostgreSQL. Jobs and attempts are kept in the order of their keys (without
-- rowid), so that a job is found by one descent; events are not, because their bodies may be large. All
-- times are milliseconds since 1970, read from the clock of this database.

create table events (
    id text primary key,
    source text not null,
    provider_id text not null,
    -- Null: the provider names no type.
    event_type text,
    -- `name: value` and a line break for each, as received.
    headers blob not null,
    body blob not null,
    received_at integer not null,
    -- The identity of an event: what makes a second one a duplicate.
    unique (source, provider_id)
) strict;

create table jobs (
    id text primary key,
    -- Null: a job that is about no event.
    event_id text,
    kind text not null,
    queue text not null,
    payload text not null,
    -- Null: a job that goes to no endpoint.
    endpoint text,
    state text not null,
    -- Attempts spent since the last replay, and over all runs.
    attempts integer not null default 0,
    attempts_total integer not null default 0,
    replays integer not null default 0,
    -- Workers that were lost with this job since the last replay.
    crashes integer not null default 0,
    -- Grows by one at each claim; a settlement must name the last one.
    token integer not null default 0,
    -- Null: nobody runs it.
    lease_until integer,
    -- Null: no need to look whether the queue has it.
    relay_at integer,
    -- Null: never claimed. Else the worker that claimed it last.
    worker text,
    run_at integer not null,
    created_at integer not null,
    -- Null: unfinished.
    finished_at integer,
    -- Null: it never became a dead letter since the last replay.
    dead_reason text,
    -- Null: no attempt has failed.
    error_class text,
    -- Null: nothing has gone wrong.
    last_error text
) strict, without rowid;

create index jobs_of_event on jobs (event_id);
create index jobs_to_relay on jobs (relay_at) where relay_at is not null;
create index jobs_unfinished on jobs (queue, id) where finished_at is null;
create index jobs_dead on jobs (id) where dead_reason is not null;

create table attempts (
    job_id text not null,
    number integer not null,
    started_at integer not null,
    duration_ms integer not null,
    outcome text not null,
    -- Null: it did not fail.
    error_class text,
    error text,
    -- Null: the other side never answered, or does not speak HTTP.
    http_status integer,
    -- Null: there was no response.
    response text,
    worker text not null,
    primary key (job_id, number)
) strict, without rowid;

-- For which life of each queue every unfinished job is known to have been pushed.
create table queue_epochs (
    queue text primary key,
    epoch text not null
) strict, without rowid;
