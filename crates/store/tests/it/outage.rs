//! A ledger that is away: nothing hangs, and nothing needs a restart when it is back.

use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use posthaste_jobs::{Ending, JobId, Queue};
use posthaste_store::{Company, Config, JobFilter, Ledger, LedgerError};
use sqlx::{Connection, SqliteConnection};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::place::{LEASE, Place, accept_one, new_event, run};

/// The longest that any call may take while the ledger is away.
const SOON: Duration = Duration::from_secs(10);

/// What a relay in front of the server does.
#[derive(Clone, Copy, PartialEq)]
enum Line {
    Up,
    /// Connections are cut, further ones refused.
    Down,
    /// Connections stay, and nothing passes.
    Frozen,
}

/// A relay in front of the server, which can be cut.
struct Wire {
    address: SocketAddr,
    line: watch::Sender<Line>,
    tasks: JoinSet<()>,
}

impl Wire {
    async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (line, state) = watch::channel(Line::Up);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut calls = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                calls.spawn(relay(client, server.clone(), state.clone()));
            }
        });
        Self { address, line, tasks }
    }

    fn set(&self, line: Line) {
        self.line.send(line).unwrap();
    }
}

async fn relay(mut client: TcpStream, server: String, mut line: watch::Receiver<Line>) {
    if *line.borrow() == Line::Down {
        return;
    }
    line.wait_for(|line| *line == Line::Up).await.ok();
    let mut upstream = TcpStream::connect(server).await.unwrap();
    let copy = tokio::io::copy_bidirectional(&mut client, &mut upstream);
    let mut watched = line.clone();
    let stopped = watched.wait_for(|line| *line != Line::Up);
    tokio::select! {
        _ = copy => return,
        _ = stopped => {}
    }
    // Frozen: held open without a word until the line is cut or up again.
    line.wait_for(|line| *line != Line::Frozen).await.ok();
}

/// Opens a ledger whose connections go through a wire.
async fn wired(place: &Place) -> (Wire, Ledger) {
    place.open().await.close().await;
    let url = place.url();
    let (_, rest) = url.split_once("://").unwrap();
    let (authority, database) = rest.split_once('/').unwrap();
    let (user, server) = authority.split_once('@').unwrap();
    let wire = Wire::to(server.to_owned()).await;
    let url = format!("postgres://{user}@{}/{database}", wire.address);
    let ledger = Ledger::open(&Config {
        url,
        ..Config::default()
    })
    .await
    .unwrap();
    (wire, ledger)
}

/// Makes one call of each kind, and checks that none is answered and none hangs.
async fn assert_away(ledger: &Ledger, job: JobId) {
    let began = Instant::now();
    let (accepted, claimed, checked, counted, renewed) = timeout(SOON, async {
        futures::join!(
            ledger.accept(new_event()),
            ledger.claim(job, "worker-1", LEASE, Company::Others),
            ledger.check(),
            ledger.unrelayed(Queue::Webhooks, 10),
            ledger.renew(&[], LEASE),
        )
    })
    .await
    .unwrap_or_else(|_| panic!("a call still hangs after {:?}", began.elapsed()));
    assert!(
        matches!(accepted, Err(LedgerError::Unavailable(_))),
        "{accepted:?}"
    );
    assert!(matches!(claimed, Err(LedgerError::Unavailable(_))), "{claimed:?}");
    assert!(matches!(checked, Err(LedgerError::Unavailable(_))), "{checked:?}");
    assert!(matches!(counted, Err(LedgerError::Unavailable(_))), "{counted:?}");
    assert!(matches!(renewed, Err(LedgerError::Unavailable(_))), "{renewed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_goes_away_is_unavailable_and_works_again_when_it_is_back() {
    let place = Place::postgres().await;
    let (wire, ledger) = wired(&place).await;
    let before = accept_one(&ledger).await;
    let waiting = accept_one(&ledger).await;
    run(&ledger, before, Ending::Succeeded).await;

    wire.set(Line::Down);
    assert_away(&ledger, waiting).await;

    wire.set(Line::Up);
    ledger.check().await.unwrap();
    let after = accept_one(&ledger).await;
    run(&ledger, waiting, Ending::Succeeded).await;
    run(&ledger, after, Ending::Succeeded).await;
    assert_eq!(ledger.count(&JobFilter::default()).await.unwrap(), 3);
    drop(wire.tasks);
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_freezes_is_unavailable_and_works_again_when_it_is_back() {
    let place = Place::postgres().await;
    let (wire, ledger) = wired(&place).await;
    let job = accept_one(&ledger).await;

    wire.set(Line::Frozen);
    assert_away(&ledger, job).await;

    wire.set(Line::Up);
    // Whether what was asked meanwhile was done is not known; what is asked now is done.
    ledger.check().await.unwrap();
    let after = accept_one(&ledger).await;
    run(&ledger, after, Ending::Succeeded).await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_our_connections_costs_no_call() {
    let place = Place::postgres().await;
    let ledger = place.open().await;
    let jobs = join_all((0..20).map(|_| accept_one(&ledger))).await;
    join_all(jobs[..10].iter().map(|job| run(&ledger, *job, Ending::Succeeded))).await;

    place
        .execute(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid()",
        )
        .await;

    accept_one(&ledger).await;
    join_all(jobs[10..].iter().map(|job| run(&ledger, *job, Ending::Succeeded))).await;
    ledger.check().await.unwrap();
    place.remove().await;
}

#[tokio::test]
async fn a_server_that_was_never_there_is_unavailable_and_not_a_mistake() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://me@{}/db", listener.local_addr().unwrap());
    drop(listener);

    let ledger = Ledger::open(&Config {
        url,
        ..Config::default()
    })
    .await
    .unwrap();

    assert_away(&ledger, crate::place::job_id()).await;
    let migrated = timeout(SOON, ledger.migrate()).await.unwrap();
    assert!(
        matches!(migrated, Err(LedgerError::Unavailable(_))),
        "{migrated:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_another_process_holds_is_unavailable_and_works_again_when_it_is_let_go() {
    let place = Place::sqlite();
    let ledger = place.open().await;
    let job = accept_one(&ledger).await;
    let mut other = SqliteConnection::connect(&place.url()).await.unwrap();
    let held = other.begin_with("begin immediate").await.unwrap();

    let accepted = timeout(SOON, ledger.accept(new_event())).await.unwrap();
    assert!(
        matches!(accepted, Err(LedgerError::Unavailable(_))),
        "{accepted:?}"
    );
    // Reading goes on.
    assert!(ledger.job(job).await.unwrap().is_some());

    held.rollback().await.unwrap();
    accept_one(&ledger).await;
    run(&ledger, job, Ending::Succeeded).await;
    assert_eq!(ledger.count(&JobFilter::default()).await.unwrap(), 2);
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_waits_for_one_of_another_process() {
    let place = Place::sqlite();
    let ledger = place.open().await;
    let mut other = SqliteConnection::connect(&place.url()).await.unwrap();
    let held = other.begin_with("begin immediate").await.unwrap();
    let mut accept = Box::pin(ledger.accept(new_event()));
    // Longer than any accept takes when nobody is in its way, shorter than it is ready to wait.
    assert!(timeout(Duration::from_millis(500), &mut accept).await.is_err());

    held.rollback().await.unwrap();

    accept.await.unwrap();
}
