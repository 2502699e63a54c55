//! Group commit: what concurrent callers ask for while one transaction is under way shares the next.
//!
//! Nobody waits for a batch to fill. A caller that is alone is a batch of one; under load the batches
//! grow by themselves, and the price of a round trip and of an fsync is paid once for all of them.

use std::future::Future;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::{Closed, LedgerError};

/// Most operations in one transaction.
const MOST_OPERATIONS: usize = 256;

/// A transaction takes no further operation once it holds this many bytes.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// Most operations that wait for a transaction; who comes then waits for a place.
const MOST_WAITING: usize = 1024;

/// Writes batches.
pub(crate) trait Commit: Send + 'static {
    /// What is asked.
    type Operation: Send + Sync;
    /// What is answered.
    type Answer: Send;

    /// Commits all operations, or none and fails. Answers are in the order of the operations; an answer
    /// that is an error is about its operation only.
    fn commit(
        &mut self,
        operations: &[Self::Operation],
    ) -> impl Future<Output = Result<Vec<Result<Self::Answer, LedgerError>>, LedgerError>> + Send;

    /// Returns about how many bytes an operation carries.
    fn size(operation: &Self::Operation) -> usize;

    /// Tells whether an operation does harm once its caller has gone away; it is dropped then.
    fn needs_its_caller(_: &Self::Operation) -> bool {
        false
    }
}

/// Hands operations to the task that commits them. Once the last clone is gone, the task ends.
pub(crate) struct Writer<C: Commit> {
    sender: mpsc::Sender<Call<C>>,
}

impl<C: Commit> Clone for Writer<C> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
        }
    }
}

impl<C: Commit> std::fmt::Debug for Writer<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

struct Call<C: Commit> {
    operation: C::Operation,
    reply: oneshot::Sender<Result<C::Answer, LedgerError>>,
}

impl<C: Commit> Call<C> {
    fn is_stale(&self) -> bool {
        self.reply.is_closed() && C::needs_its_caller(&self.operation)
    }
}

impl<C: Commit> Writer<C> {
    /// Starts the task. Once `closing` is cancelled it takes no more, writes what it has, and ends.
    pub(crate) fn start(commit: C, tasks: &TaskTracker, closing: CancellationToken) -> Self {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        tasks.spawn(run(commit, receiver, closing));
        Self { sender }
    }

    /// Returns once the operation is committed. It may be committed although the caller has gone away.
    pub(crate) async fn write(&self, operation: C::Operation) -> Result<C::Answer, LedgerError> {
        let (reply, answer) = oneshot::channel();
        self.sender
            .send(Call { operation, reply })
            .await
            .map_err(|_| Closed)?;
        answer.await.map_err(|_| Closed)?
    }
}

async fn run<C: Commit>(mut commit: C, mut receiver: mpsc::Receiver<Call<C>>, closing: CancellationToken) {
    loop {
        let first = tokio::select! {
            biased;
            () = closing.cancelled(), if !receiver.is_closed() => {
                receiver.close();
                continue;
            }
            call = receiver.recv() => call,
        };
        let Some(first) = first else { return };
        if first.is_stale() {
            continue;
        }
        let (operations, replies) = gather(first, &mut receiver);
        let answers = commit_all(&mut commit, &operations).await;
        for (reply, answer) in replies.into_iter().zip(answers) {
            // Who no longer waits has no use for an answer.
            let _ = reply.send(answer);
        }
    }
}

type Replies<C> = Vec<oneshot::Sender<Result<<C as Commit>::Answer, LedgerError>>>;

fn gather<C: Commit>(
    first: Call<C>,
    receiver: &mut mpsc::Receiver<Call<C>>,
) -> (Vec<C::Operation>, Replies<C>) {
    let mut bytes = C::size(&first.operation);
    let mut operations = vec![first.operation];
    let mut replies = vec![first.reply];
    while operations.len() < MOST_OPERATIONS && bytes < MOST_BYTES {
        let Ok(call) = receiver.try_recv() else { break };
        if call.is_stale() {
            continue;
        }
        bytes += C::size(&call.operation);
        operations.push(call.operation);
        replies.push(call.reply);
    }
    (operations, replies)
}

/// Commits a batch. If it is refused, each operation is tried alone, so that one that cannot be written
/// does not take the others with it.
async fn commit_all<C: Commit>(
    commit: &mut C,
    operations: &[C::Operation],
) -> Vec<Result<C::Answer, LedgerError>> {
    match commit.commit(operations).await {
        Ok(answers) => answers,
        Err(LedgerError::Refused(_)) if operations.len() > 1 => {
            let mut answers = Vec::with_capacity(operations.len());
            for operation in operations {
                let alone = commit.commit(std::slice::from_ref(operation)).await;
                answers.push(alone.and_then(|mut answers| answers.pop().unwrap_or(Err(Closed.into()))));
            }
            answers
        }
        Err(error) => {
            let error = error.share();
            operations.iter().map(|_| Err(error())).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    /// Answers with the batch, once it has a permit. Even operations need their caller.
    struct Gated(Arc<Semaphore>);

    impl Commit for Gated {
        type Operation = u32;
        type Answer = Vec<u32>;

        async fn commit(
            &mut self,
            operations: &[u32],
        ) -> Result<Vec<Result<Vec<u32>, LedgerError>>, LedgerError> {
            self.0.acquire().await.unwrap().forget();
            Ok(operations.iter().map(|_| Ok(operations.to_vec())).collect())
        }

        fn size(_: &u32) -> usize {
            0
        }

        fn needs_its_caller(operation: &u32) -> bool {
            operation.is_multiple_of(2)
        }
    }

    #[tokio::test]
    async fn of_callers_that_have_gone_only_what_needs_none_is_written() {
        let gate = Arc::new(Semaphore::new(0));
        let writer = Writer::start(
            Gated(Arc::clone(&gate)),
            &TaskTracker::new(),
            CancellationToken::new(),
        );
        let mut first = Box::pin(writer.write(0));
        assert!(futures::poll!(&mut first).is_pending());
        tokio::task::yield_now().await;
        for gone in [2, 3, 4] {
            assert!(futures::poll!(Box::pin(writer.write(gone))).is_pending());
        }
        let mut last = Box::pin(writer.write(6));
        assert!(futures::poll!(&mut last).is_pending());

        gate.add_permits(2);

        assert_eq!(first.await.unwrap(), [0]);
        assert_eq!(last.await.unwrap(), [3, 6]);
    }
}
