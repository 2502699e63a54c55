use std::error::Error;

/// Tells an error with all its causes, on one line: for logs, attempts and people.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("could not\ndeliver")]
    struct Outer(#[source] io::Error);

    #[test]
    fn every_cause_is_told_once_and_on_one_line() {
        let error = Outer(io::Error::other("connection refused"));

        assert_eq!(chain(&error), "could not deliver: connection refused");
    }
}
