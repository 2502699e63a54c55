use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use sqlx::PgConnection;
use sqlx::postgres::PgConnectOptions;
use tokio::time::timeout;

use super::connect;
use crate::batch::Commit;
use crate::error::{LedgerError, TimedOut, is_conflict, leaves_connection};

/// How long a batch may take.
const BATCH: Duration = Duration::from_secs(5);

/// How often a batch is tried again when another transaction stood in its way.
const CONFLICTS: u32 = 5;

/// One kind of batch. Run again after its answer was lost, it must do no harm.
pub(super) trait Statement: Send + 'static {
    /// What is asked.
    type Operation: Send + Sync;
    /// What is answered.
    type Answer: Send;

    /// Whether an operation does harm once its caller has gone away.
    const NEEDS_ITS_CALLER: bool = false;

    /// Settings of the connection.
    const SETTINGS: &'static [(&'static str, &'static str)];

    /// Commits all operations, or none and fails.
    fn run(
        connection: &mut PgConnection,
        operations: &[Self::Operation],
    ) -> impl Future<Output = Result<Vec<Result<Self::Answer, LedgerError>>, sqlx::Error>> + Send;

    /// Returns about how many bytes an operation carries.
    fn size(_: &Self::Operation) -> usize {
        0
    }
}

/// Runs batches on a connection of its own, which is made when it is needed.
pub(super) struct Committer<S> {
    options: PgConnectOptions,
    connection: Option<PgConnection>,
    statement: PhantomData<S>,
}

impl<S: Statement> Committer<S> {
    pub(super) fn new(options: &PgConnectOptions) -> Self {
        let batch = BATCH.as_millis().to_string();
        Self {
            options: options
                .clone()
                .options([("statement_timeout", batch.as_str())])
                .options(S::SETTINGS.iter().copied()),
            connection: None,
            statement: PhantomData,
        }
    }
}

impl<S: Statement> Commit for Committer<S> {
    type Operation = S::Operation;
    type Answer = S::Answer;

    async fn commit(
        &mut self,
        operations: &[S::Operation],
    ) -> Result<Vec<Result<S::Answer, LedgerError>>, LedgerError> {
        let mut conflicts = 0;
        loop {
            // A connection that was good for the last batch may be gone by now; a fresh one that fails
            // tells of the server.
            let kept = self.connection.take();
            let fresh = kept.is_none();
            let mut connection = match kept {
                Some(connection) => connection,
                None => connect(&self.options).await?,
            };
            let answered = timeout(BATCH, S::run(&mut connection, operations)).await;
            let Ok(answered) = answered else {
                return Err(TimedOut(BATCH).into());
            };
            let error = match answered {
                Ok(answers) => {
                    self.connection = Some(connection);
                    return Ok(answers);
                }
                Err(error) => error,
            };
            let usable = leaves_connection(&error);
            if usable {
                self.connection = Some(connection);
            }
            if is_conflict(&error) && conflicts < CONFLICTS {
                conflicts += 1;
            } else if usable || fresh {
                return Err(error.into());
            }
        }
    }

    fn size(operation: &S::Operation) -> usize {
        S::size(operation)
    }

    fn needs_its_caller(_: &S::Operation) -> bool {
        S::NEEDS_ITS_CALLER
    }
}
