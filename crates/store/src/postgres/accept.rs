use std::collections::{BTreeMap, HashMap, HashSet};

use posthaste_jobs::EventId;
use sqlx::PgConnection;

use super::clock;
use super::writer::Statement;
use crate::error::{LedgerError, Vanished};
use crate::value::{millis, parse};
use crate::{Accepted, NewEvent, NewJob};

/// Accepts events with their jobs. Run again, it finds what it has written.
pub(super) struct Accept;

impl Statement for Accept {
    type Operation = NewEvent;
    type Answer = Accepted;

    // The joins are between arrays, where hashing is right. The tables are only looked into by index.
    const SETTINGS: &'static [(&'static str, &'static str)] =
        &[("enable_nestloop", "off"), ("enable_seqscan", "off")];

    async fn run(
        connection: &mut PgConnection,
        events: &[NewEvent],
    ) -> Result<Vec<Result<Accepted, LedgerError>>, sqlx::Error> {
        let firsts = firsts(events);
        let inserted = insert(connection, &firsts).await?;
        let mut holders: HashMap<Identity<'_>, String> = HashMap::with_capacity(firsts.len());
        let mut present = Vec::new();
        for first in &firsts {
            let id = first.id.to_string();
            if inserted.contains(&id) {
                holders.insert(identity(first), id);
            } else {
                present.push(*first);
            }
        }
        if !present.is_empty() {
            for (place, id) in find(connection, &present).await? {
                let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
                holders.extend(present.get(place).map(|event| (identity(event), id)));
            }
        }
        let answers = events.iter().map(|event| {
            let holder: EventId = parse(holders.get(&identity(event)).ok_or(Vanished)?)?;
            Ok(event.found(holder))
        });
        Ok(answers.collect())
    }

    fn size(event: &NewEvent) -> usize {
        event.body.len()
    }
}

/// What makes a second event a duplicate: the source and the provider's id.
type Identity<'a> = (&'a str, &'a str);

fn identity(event: &NewEvent) -> Identity<'_> {
    (&event.source, &event.provider_id)
}

/// Returns the first event of each identity, in order of identity: two processes that insert the same
/// ones in the same order wait for each other and not in a circle.
fn firsts(events: &[NewEvent]) -> Vec<&NewEvent> {
    let mut firsts = BTreeMap::new();
    for event in events {
        firsts.entry(identity(event)).or_insert(event);
    }
    firsts.into_values().collect()
}

/// Inserts those events that are not there, with their jobs, and returns their ids. The relay looks after
/// a job that nobody has claimed 3 s later.
async fn insert(connection: &mut PgConnection, events: &[&NewEvent]) -> Result<HashSet<String>, sqlx::Error> {
    let ids: Vec<String> = events.iter().map(|event| event.id.to_string()).collect();
    let sources: Vec<&str> = events.iter().map(|event| &*event.source).collect();
    let provider_ids: Vec<&str> = events.iter().map(|event| &*event.provider_id).collect();
    let event_types: Vec<Option<&str>> = events.iter().map(|event| event.event_type.as_deref()).collect();
    let headers: Vec<Vec<u8>> = events.iter().map(|event| event.headers.to_block()).collect();
    let bodies: Vec<&[u8]> = events.iter().map(|event| &*event.body).collect();
    let jobs: Vec<(&str, &NewJob)> = ids
        .iter()
        .zip(events)
        .flat_map(|(id, event)| event.jobs.iter().map(move |job| (&**id, job)))
        .collect();

    let inserted: Vec<String> = sqlx::query_scalar(concat!(
        "with ",
        clock!(),
        ", event as (
            insert into events (id, source, provider_id, event_type, headers, body, received_at)
            select id, source, provider_id, event_type, headers, body, (select now from clock)
            from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bytea[])
                as arrived (id, source, provider_id, event_type, headers, body)
            on conflict (source, provider_id) do nothing
            returning id
         ), job as (
            insert into jobs (id, event_id, kind, queue, payload, endpoint, state, priority, run_at, created_at, relay_at)
            select owed.id, event.id, kind, queue, payload, endpoint, state, priority,
                (select now from clock) + wait, (select now from clock), (select now from clock) + 3000
            from unnest($7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[],
                    $14::text[], $15::bigint[])
                as owed (id, event_id, kind, queue, payload, endpoint, state, priority, wait)
            join event on event.id = owed.event_id
         )
         select id from event"
    ))
    .bind(&ids)
    .bind(sources)
    .bind(provider_ids)
    .bind(event_types)
    .bind(headers)
    .bind(bodies)
    .bind(jobs.iter().map(|(_, job)| job.id.to_string()).collect::<Vec<_>>())
    .bind(jobs.iter().map(|(event, _)| *event).collect::<Vec<_>>())
    .bind(jobs.iter().map(|(_, job)| job.kind.as_str()).collect::<Vec<_>>())
    .bind(jobs.iter().map(|(_, job)| job.kind.queue().as_str()).collect::<Vec<_>>())
    .bind(jobs.iter().map(|(_, job)| &*job.payload).collect::<Vec<_>>())
    .bind(jobs.iter().map(|(_, job)| job.endpoint.as_deref()).collect::<Vec<_>>())
    .bind(jobs.iter().map(|(_, job)| job.state().as_str()).collect::<Vec<_>>())
    .bind(jobs.iter().map(|(_, job)| job.priority.as_str()).collect::<Vec<_>>())
    .bind(jobs.iter().map(|(_, job)| millis(job.wait)).collect::<Vec<_>>())
    .fetch_all(connection)
    .await?;
    Ok(inserted.into_iter().collect())
}

/// Returns the place (from 1) and the stored id of each event that is there. A statement of its own: the
/// one that met the conflict does not see what it met.
async fn find(
    connection: &mut PgConnection,
    events: &[&NewEvent],
) -> Result<Vec<(i64, String)>, sqlx::Error> {
    sqlx::query_as(
        "select wanted.place, stored.id
         from unnest($1::text[], $2::text[]) with ordinality as wanted (source, provider_id, place)
         cross join lateral (
            select id from events
            where events.source = wanted.source and events.provider_id = wanted.provider_id
            limit 1
         ) as stored",
    )
    .bind(events.iter().map(|event| &*event.source).collect::<Vec<_>>())
    .bind(events.iter().map(|event| &*event.provider_id).collect::<Vec<_>>())
    .fetch_all(connection)
    .await
}
