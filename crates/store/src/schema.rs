use std::collections::HashMap;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use crate::LedgerError;

/// Why the tables of a ledger are not those that this program works with.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// A newer program has migrated it.
    #[error("the ledger's schema is at version {0}, which is newer than this program")]
    Newer(i64),
    /// It is yet to be migrated.
    #[error("the ledger's schema lacks version {0}: it is to be migrated")]
    Behind(i64),
    /// It was migrated to something else under the same version.
    #[error("version {0} of the ledger's schema is not the one that this program knows")]
    Changed(i64),
}

impl From<SchemaError> for LedgerError {
    fn from(error: SchemaError) -> Self {
        Self::Refused(Box::new(error))
    }
}

/// Makes a migrator of versions, names and statements. Spelt out rather than found by `sqlx::migrate!`,
/// whose macros build the database drivers a second time.
pub(crate) fn migrator<const N: usize>(files: [(i64, &'static str, &'static str); N]) -> Migrator {
    let migrations = files.map(|(version, name, sql)| {
        Migration::new(
            version,
            name.into(),
            MigrationType::Simple,
            sql.into_sql_str(),
            false,
        )
    });
    Migrator::with_migrations(migrations.into())
}

/// Says what a failed migration means.
pub(crate) fn migrate_error(error: MigrateError) -> LedgerError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
        MigrateError::VersionMissing(version) => SchemaError::Newer(version).into(),
        MigrateError::VersionMismatch(version) => SchemaError::Changed(version).into(),
        other => LedgerError::Refused(Box::new(other)),
    }
}

/// Says that a ledger has no schema at all.
pub(crate) fn behind(migrator: &Migrator) -> SchemaError {
    SchemaError::Behind(migrator.iter().map(|known| known.version).max().unwrap_or(0))
}

/// Compares the versions that a ledger has with those that this program knows.
pub(crate) fn compare(migrator: &Migrator, applied: Vec<(i64, Vec<u8>)>) -> Result<(), SchemaError> {
    let mut applied: HashMap<i64, Vec<u8>> = applied.into_iter().collect();
    for known in migrator.iter() {
        match applied.remove(&known.version) {
            None => return Err(SchemaError::Behind(known.version)),
            Some(checksum) if checksum != *known.checksum => {
                return Err(SchemaError::Changed(known.version));
            }
            Some(_) => {}
        }
    }
    match applied.into_keys().max() {
        Some(version) => Err(SchemaError::Newer(version)),
        None => Ok(()),
    }
}
