use std::io::{IsTerminal, Write};

use tokio::time::Instant;

/// Tells the story line by line on stdout, in colour on a terminal.
pub(super) struct Timeline {
    began: Instant,
    colours: bool,
    out: std::io::Stdout,
}

impl Timeline {
    /// Starts the clock.
    pub(super) fn start() -> Self {
        let out = std::io::stdout();
        let colours = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self {
            began: Instant::now(),
            colours,
            out,
        }
    }

    /// Opens a chapter.
    pub(super) fn chapter(&mut self, title: &str) -> std::io::Result<()> {
        let (bold, plain) = if self.colours {
            ("\x1b[1m", "\x1b[0m")
        } else {
            ("", "")
        };
        writeln!(self.out, "\n{bold}{title}{plain}")
    }

    /// Tells one thing that was seen to happen.
    pub(super) fn seen(&mut self, what: &str, detail: &str) -> std::io::Result<()> {
        let (green, grey, plain) = if self.colours {
            ("\x1b[32m", "\x1b[90m", "\x1b[0m")
        } else {
            ("", "", "")
        };
        let at = self.began.elapsed().as_secs_f64();
        writeln!(
            self.out,
            "{grey}{at:7.3} s{plain}  {green}ok{plain}  {what:<34}{grey}{detail}{plain}"
        )
    }

    /// Tells anything else, without a mark.
    pub(super) fn say(&mut self, text: &str) -> std::io::Result<()> {
        writeln!(self.out, "{text}")
    }

    /// Returns the seconds since the start.
    pub(super) fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}
