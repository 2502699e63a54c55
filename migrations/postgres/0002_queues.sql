-- How urgent a job is, and what holds for a queue as a whole: the life of it that holds every unfinished
-- job, whether an operator has paused it, and when it was last compared with the jobs.

alter table jobs add column priority text not null default 'normal';

create table queues (
    name text primary key,
    -- Null: no life of the queue is known to have held every unfinished job.
    epoch text,
    -- Null: not paused.
    paused_at bigint,
    -- Null: never swept.
    swept_at bigint
);

insert into queues (name, epoch) select queue, epoch from queue_epochs;

drop table queue_epochs;
