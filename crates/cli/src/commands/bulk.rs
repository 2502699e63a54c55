//! What commands that touch many rows have in common: consent, pace, progress, interruption.

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroU32;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::failure::Failure;
use crate::print::{note, progress};

/// Most rows that one write touches.
const BATCH: usize = 500;

/// How a bulk command is carried out.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "How")]
pub(crate) struct Bulk {
    /// Takes everything there is, when nothing else says which
    #[arg(long)]
    pub(crate) all: bool,
    /// At most so many per second
    #[arg(long, value_name = "N")]
    pub(crate) rate: Option<NonZeroU32>,
    /// Prints what would be touched, and touches nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Does not ask
    #[arg(long)]
    pub(crate) yes: bool,
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How rows were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Each by its id: whoever typed them knows what they are.
    Named,
    /// By what they have in common.
    Filtered,
    /// Everything, said with `--all`.
    All,
}

impl Selection {
    /// Tells how rows were chosen.
    ///
    /// # Errors
    ///
    /// Nothing was chosen, or everything and something.
    pub(crate) fn of(ids: bool, filters: bool, all: bool) -> Result<Self, Failure> {
        match (ids, filters, all) {
            (false, false, false) => Err(Failure::usage(
                "nothing says which: give ids or filters, or --all for everything",
            )
            .hint("add --dry-run --all to see what there is")),
            (false, false, true) => Ok(Self::All),
            (_, _, true) => Err(
                Failure::usage("--all is for everything, and ids or filters say otherwise")
                    .hint("leave out --all"),
            ),
            (true, false, false) => Ok(Self::Named),
            (_, true, false) => Ok(Self::Filtered),
        }
    }
}

/// What stands between a bulk command and its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    Given,
    MustAsk,
    CannotAsk,
}

/// Decides whether to ask.
fn consent(selection: Selection, yes: bool, count: usize, terminal: bool) -> Consent {
    if yes || count == 0 || selection == Selection::Named {
        Consent::Given
    } else if terminal {
        Consent::MustAsk
    } else {
        Consent::CannotAsk
    }
}

impl Bulk {
    /// Asks, if it must, whether to do `what`.
    ///
    /// # Errors
    ///
    /// The answer is no, or there is nobody to ask.
    pub(crate) fn consent(&self, selection: Selection, what: &str, count: usize) -> Result<(), Failure> {
        match consent(
            selection,
            self.yes,
            count,
            io::stdin().is_terminal() && io::stderr().is_terminal(),
        ) {
            Consent::Given => Ok(()),
            Consent::CannotAsk => Err(Failure::usage(format!(
                "would {what}, and there is no terminal to ask at"
            ))
            .hint("add --yes")),
            Consent::MustAsk => {
                let mut answer = String::new();
                write!(io::stderr(), "{what}? [y/N] ")?;
                io::stdin().read_line(&mut answer)?;
                if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
                    Ok(())
                } else {
                    Err(Failure::failed("nothing was done"))
                }
            }
        }
    }
}

/// Hands `ids` to `act` in batches, no faster than `rate` per second, and shows how far it is.
///
/// # Errors
///
/// `act` failed, or Ctrl-C came; whatever was handed over before is done.
pub(crate) async fn in_batches<Id>(
    ids: &[Id],
    rate: Option<NonZeroU32>,
    done_word: &str,
    mut act: impl AsyncFnMut(&[Id]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))?;
    let terminal = io::stderr().is_terminal();
    let start = Instant::now();
    let mut done = 0;
    for batch in ids.chunks(batch_size(rate)) {
        tokio::select! {
            biased;
            _ = interrupts.recv() => {
                if terminal {
                    note("");
                }
                return Err(Failure::failed(format!("interrupted: {done_word} {done} of {}", ids.len()))
                    .hint("run the same command again for the rest"));
            }
            () = tokio::time::sleep_until(start + pace(done, rate)) => {}
        }
        act(batch).await?;
        done += batch.len();
        if terminal {
            progress(bar(done, ids.len(), start.elapsed(), done_word));
        }
    }
    if terminal && done > 0 {
        note("");
    }
    Ok(())
}

/// Keeps batches small under a slow rate, so that it is even.
fn batch_size(rate: Option<NonZeroU32>) -> usize {
    rate.map_or(BATCH, |rate| {
        usize::try_from(rate.get() / 4).unwrap_or(BATCH).clamp(1, BATCH)
    })
}

/// Returns when, counted from the start, more than `done` may be done.
fn pace(done: usize, rate: Option<NonZeroU32>) -> Duration {
    rate.map_or(Duration::ZERO, |rate| {
        Duration::from_secs_f64(done as f64 / f64::from(rate.get()))
    })
}

fn bar(done: usize, total: usize, elapsed: Duration, done_word: &str) -> String {
    const CELLS: usize = 20;
    let filled = CELLS * done / total.max(1);
    let per_second = done as f64 / elapsed.as_secs_f64().max(0.001);
    let left = (total - done) as f64 / per_second.max(0.001);
    format!(
        "[{}{}] {done_word} {done} of {total}, {per_second:.0}/s, about {left:.0}s left",
        "#".repeat(filled),
        " ".repeat(CELLS - filled)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_second: u32) -> Option<NonZeroU32> {
        NonZeroU32::new(per_second)
    }

    #[test]
    fn a_filter_is_asked_about_unless_yes_is_given() {
        assert_eq!(consent(Selection::Filtered, false, 2, true), Consent::MustAsk);
        assert_eq!(consent(Selection::Filtered, true, 2, true), Consent::Given);
        assert_eq!(consent(Selection::All, false, 2, true), Consent::MustAsk);
    }

    #[test]
    fn without_a_terminal_nothing_is_done_unless_yes_is_given() {
        assert_eq!(consent(Selection::Filtered, false, 2, false), Consent::CannotAsk);
        assert_eq!(consent(Selection::All, true, 2, false), Consent::Given);
    }

    #[test]
    fn what_is_named_or_nothing_at_all_needs_no_question() {
        assert_eq!(consent(Selection::Named, false, 1, false), Consent::Given);
        assert_eq!(consent(Selection::Filtered, false, 0, false), Consent::Given);
    }

    #[test]
    fn everything_must_be_said() {
        assert!(Selection::of(false, false, false).is_err());
        assert_eq!(Selection::of(false, false, true).unwrap(), Selection::All);
        assert!(Selection::of(false, true, true).is_err());
        assert_eq!(Selection::of(true, false, false).unwrap(), Selection::Named);
        assert_eq!(Selection::of(true, true, false).unwrap(), Selection::Filtered);
    }

    #[test]
    fn a_rate_sets_the_time_of_each_batch() {
        assert_eq!(pace(0, rate(10)), Duration::ZERO);
        assert_eq!(pace(25, rate(10)), Duration::from_millis(2500));
        assert_eq!(pace(1_000_000, None), Duration::ZERO);
        assert_eq!([rate(1), rate(40), rate(100_000)].map(batch_size), [1, 10, BATCH]);
    }

    #[tokio::test]
    async fn a_batch_that_fails_ends_it_and_what_was_done_before_stays() {
        let mut seen = Vec::new();
        let ids: Vec<u32> = (0..1200).collect();

        let ending = in_batches(&ids, None, "done", async |batch: &[u32]| {
            if seen.len() == 1000 {
                return Err(Failure::failed("away"));
            }
            seen.extend_from_slice(batch);
            Ok(())
        })
        .await;

        assert!(ending.is_err());
        assert_eq!(seen.len(), 1000);
    }
}
