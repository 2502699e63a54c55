use std::error::Error;

use futures::future::join_all;
use posthaste_store::{Config, Ledger, LedgerError, OpenError, SchemaError};

use crate::on_both;
use crate::place::{Place, accept_one};

on_both!(
    several_processes_migrate_at_once,
    a_ledger_without_schema_is_behind,
    a_ledger_of_a_newer_program_is_refused,
);

async fn several_processes_migrate_at_once(place: &Place) {
    let mut ledgers = Vec::new();
    for _ in 0..8 {
        ledgers.push(place.open_only().await);
    }

    let migrated = join_all(ledgers.iter().map(Ledger::migrate)).await;

    for result in migrated {
        result.unwrap();
    }
    for ledger in &ledgers {
        ledger.check().await.unwrap();
        accept_one(ledger).await;
    }
}

fn schema_error(error: &LedgerError) -> &SchemaError {
    error
        .source()
        .unwrap()
        .downcast_ref()
        .unwrap_or_else(|| panic!("{error:?}"))
}

async fn a_ledger_without_schema_is_behind(place: &Place) {
    let ledger = place.open_only().await;

    let error = ledger.check().await.unwrap_err();

    assert!(matches!(schema_error(&error), SchemaError::Behind(_)));
    ledger.migrate().await.unwrap();
    ledger.check().await.unwrap();
}

async fn a_ledger_of_a_newer_program_is_refused(place: &Place) {
    let ledger = place.open().await;
    place
        .execute(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             select 999, 'from the future', success, checksum, 0 from _sqlx_migrations
             where version = 1",
        )
        .await;

    for result in [ledger.check().await, ledger.migrate().await] {
        let error = result.unwrap_err();
        assert!(matches!(schema_error(&error), SchemaError::Newer(999)));
    }
}

async fn open(url: &str) -> Result<Ledger, OpenError> {
    Ledger::open(&Config {
        url: url.to_owned(),
        ..Config::default()
    })
    .await
}

#[tokio::test]
async fn a_url_that_names_no_ledger_is_an_error_that_shows_no_password() {
    assert!(
        matches!(open("mysql://me:hunter2@host/db").await, Err(OpenError::UnknownScheme { scheme }) if scheme == "mysql")
    );
    assert!(matches!(open("").await, Err(OpenError::UnknownScheme { .. })));
    assert!(matches!(open("sqlite:").await, Err(OpenError::NoPath)));
    assert!(matches!(open("sqlite::memory:").await, Err(OpenError::InMemory)));
    assert!(matches!(
        open("sqlite:file.db?mode=rwc").await,
        Err(OpenError::Parameters)
    ));

    for url in [
        "postgres://me:hunter2@host:port/db",
        "postgres://me:hunter2@host/db?sslmode=maybe",
    ] {
        let error = open(url).await.unwrap_err();
        assert!(matches!(error, OpenError::BadUrl(_)), "{error:?}");
        assert!(!format!("{error:?} {error} {}", error.source().unwrap()).contains("hunter2"));
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let url = format!("sqlite:{}/below/ledger.db", file.display());

    let error = open(&url).await.unwrap_err();

    assert!(error.to_string().contains("below/ledger.db"), "{error}");
}

#[tokio::test]
async fn four_connections_are_enough_for_postgresql_and_three_are_not() {
    let with = |max_connections| Config {
        url: "postgres://me@127.0.0.1:1/db".to_owned(),
        max_connections,
    };

    assert!(Ledger::open(&with(4)).await.is_ok());
    assert!(matches!(
        Ledger::open(&with(3)).await,
        Err(OpenError::TooFewConnections { least: 4, given: 3 })
    ));
}
