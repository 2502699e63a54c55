use posthaste_jobs::{Kind, Queue, State};

use crate::config::Config;
use crate::failure::Failure;
use crate::nearest::nearest;

/// Reads the name of a queue.
pub(crate) fn queue(name: &str) -> Result<Queue, String> {
    name.parse()
        .map_err(|_| unknown("queue", name, Queue::ALL.map(Queue::as_str)))
}

/// Reads the name of a kind of job.
pub(crate) fn kind(name: &str) -> Result<Kind, String> {
    name.parse()
        .map_err(|_| unknown("kind of job", name, Kind::ALL.map(Kind::as_str)))
}

/// Reads the name of a state.
pub(crate) fn state(name: &str) -> Result<State, String> {
    name.parse()
        .map_err(|_| unknown("state", name, State::ALL.map(State::as_str)))
}

fn unknown<const N: usize>(what: &str, name: &str, known: [&str; N]) -> String {
    let meant = nearest(name, known).map_or_else(String::new, |near| format!(", did you mean {near:?}?"));
    format!("no {what} is called {name:?}, known: {}{meant}", known.join(", "))
}

/// The names in a configuration, for telling a misspelt one from one that simply has nothing.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    sources: Vec<&'a str>,
    endpoints: Vec<&'a str>,
}

impl<'a> Names<'a> {
    /// Takes the names from a configuration.
    pub(crate) fn of(config: &'a Config) -> Self {
        Self {
            sources: config.sources.iter().map(|source| source.name.as_str()).collect(),
            endpoints: config
                .endpoints
                .iter()
                .map(|endpoint| endpoint.name.as_str())
                .collect(),
        }
    }

    /// Explains why nothing was found, if a name that was asked for is not in the configuration.
    ///
    /// Only then: what the ledger holds of an endpoint that has left the configuration can still be
    /// asked for.
    ///
    /// # Errors
    ///
    /// Names the nearest that there is.
    pub(crate) fn explain_nothing(
        &self,
        source: Option<&str>,
        endpoint: Option<&str>,
    ) -> Result<(), Failure> {
        explain("source", source, &self.sources)?;
        explain("endpoint", endpoint, &self.endpoints)
    }
}

fn explain(what: &str, name: Option<&str>, known: &[&str]) -> Result<(), Failure> {
    let Some(name) = name.filter(|name| !known.contains(name)) else {
        return Ok(());
    };
    if known.is_empty() {
        return Ok(());
    }
    let failure = Failure::usage(format!(
        "no {what} is called {name:?}, known: {}, and nothing was found",
        known.join(", ")
    ));
    Err(match nearest(name, known.iter().copied()) {
        Some(near) => failure.hint(format!("--{what} {near}")),
        None => failure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_queue_or_state_names_the_nearest() {
        assert!(
            queue("webhook")
                .unwrap_err()
                .contains("did you mean \"webhooks\"?")
        );
        assert!(state("ded").unwrap_err().contains("did you mean \"dead\"?"));
        assert!(kind("webhook.delivery").is_ok());
    }

    #[test]
    fn a_misspelt_endpoint_is_a_usage_error_that_can_be_typed() {
        let names = Names {
            sources: vec!["github"],
            endpoints: vec!["orders", "users"],
        };

        let failure = names.explain_nothing(Some("github"), Some("ordesr")).unwrap_err();

        assert!(failure.report().ends_with("hint: --endpoint orders\n"));
        assert!(names.explain_nothing(None, Some("users")).is_ok());
    }
}
