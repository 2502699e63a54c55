//! Data goes to stdout, through one printer; everything else is a note on stderr.

mod table;

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};

use serde::Serialize;

pub(crate) use table::{Column, Table, clean};

use crate::failure::Failure;

/// Writes data to stdout. A reader that has gone ends the command quietly.
pub(crate) struct Printer<W: Write = BufWriter<StdoutLock<'static>>> {
    out: W,
}

impl Printer {
    /// Locks stdout.
    pub(crate) fn stdout() -> Self {
        Self {
            out: BufWriter::new(io::stdout().lock()),
        }
    }
}

impl<W: Write> Printer<W> {
    /// Writes one line, or several.
    pub(crate) fn line(&mut self, line: impl Display) -> Result<(), Failure> {
        Ok(writeln!(self.out, "{line}")?)
    }

    /// Writes one JSON value.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::failed(format!("cannot be written as JSON: {error}")))?;
        self.line(text)
    }

    /// Writes bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.out.write_all(bytes)?)
    }

    /// Hands everything over to the reader.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

/// Writes a list as JSON or as its table, and says how to go on after its `last` where there may be more.
pub(crate) fn print_page<Row: Serialize>(
    rows: &[Row],
    json: bool,
    table: impl Display,
    last: Option<impl Display>,
) -> Result<(), Failure> {
    let mut out = Printer::stdout();
    if json {
        out.json(&rows)?;
    } else {
        out.line(table)?;
    }
    out.finish()?;
    if let Some(last) = last {
        note(format!("for more: --before {last}"));
    }
    Ok(())
}

/// Says something to the person at the terminal.
pub(crate) fn note(line: impl Display) {
    // There is nowhere left to tell that stderr is gone.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes over the line that the cursor is in.
pub(crate) fn progress(line: impl Display) {
    // As in `note`.
    let _ = write!(io::stderr(), "\r\x1b[K{line}");
    let _ = io::stderr().flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_a_quiet_end() {
        let failure = Printer { out: Gone }.line("data").unwrap_err();

        assert_eq!(failure.report(), "");
    }
}
