-- What came in (events), what we owe for it (jobs) and what we tried (attempts).
--
-- A job's row is written three times in its life: accepted, claimed, settled. A claim changes no column
-- that an index mentions, so it stays within its page (a HOT update) and costs no index entry; this is
-- why the indexes ask for `finished_at`, `relay_at` and `dead_reason` and never for `state`. The empty
-- part of each page (fillfactor) is where the next version of a row goes.
--
-- Ids sort by time when compared byte by byte, hence the "C" collation. All times are milliseconds since
-- 1970, read from the clock of this database.

create table events (
    id text collate "C" primary key,
    source text collate "C" not null,
    provider_id text collate "C" not null,
    -- Null: the provider names no type.
    event_type text,
    -- `name: value` and a line break for each, as received.
    headers bytea not null,
    body bytea not null,
    received_at bigint not null,
    -- The identity of an event: what makes a second one a duplicate.
    unique (source, provider_id)
);

create table jobs (
    id text collate "C" primary key,
    -- Null: a job that is about no event.
    event_id text collate "C",
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
    token bigint not null default 0,
    -- Null: nobody runs it.
    lease_until bigint,
    -- Null: no need to look whether the queue has it.
    relay_at bigint,
    -- Null: never claimed. Else the worker that claimed it last.
    worker text,
    run_at bigint not null,
    created_at bigint not null,
    -- Null: unfinished.
    finished_at bigint,
    -- Null: it never became a dead letter since the last replay.
    dead_reason text,
    -- Null: no attempt has failed.
    error_class text,
    -- Null: nothing has gone wrong.
    last_error text
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_cost_limit = 2000,
    autovacuum_analyze_scale_factor = 0.05
);

create index jobs_of_event on jobs (event_id);
create index jobs_to_relay on jobs (relay_at) where relay_at is not null;
create index jobs_unfinished on jobs (queue, id) where finished_at is null;
create index jobs_dead on jobs (id) where dead_reason is not null;

create table attempts (
    job_id text collate "C" not null,
    number integer not null,
    started_at bigint not null,
    duration_ms bigint not null,
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
);

-- For which life of each queue every unfinished job is known to have been pushed.
create table queue_epochs (
    queue text primary key,
    epoch text not null
);
