use std::fmt;

/// What a line may be long, as on every terminal.
const WIDTH: usize = 80;
/// What stands between two columns.
const GAP: usize = 2;
/// No column is cut shorter than this.
const NARROWEST: usize = 6;

/// One column of a [`Table`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    fit: Fit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// Shown whole: an id that is cut cannot be typed.
    Whole,
    /// Cut when the line would be too long.
    Cut,
}

impl Column {
    /// A column that is always shown whole.
    pub(crate) const fn whole(title: &'static str) -> Self {
        Self {
            title,
            fit: Fit::Whole,
        }
    }

    /// A column that gives way when the line would be too long.
    pub(crate) const fn cut(title: &'static str) -> Self {
        Self { title, fit: Fit::Cut }
    }
}

/// Rows under titles, in 80 columns of plain text.
#[derive(Clone, Debug)]
pub(crate) struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// Makes a table without rows.
    pub(crate) const fn new(columns: [Column; N]) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row. Control characters are shown, not sent to the terminal: others wrote this text.
    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| clean(&cell)));
    }

    /// Returns the width of each column: what its longest cell needs, or less for those that give way.
    fn widths(&self) -> [usize; N] {
        let mut widths = self.columns.map(|column| column.title.len());
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let gaps = GAP * N.saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > WIDTH {
            let widest = (0..N)
                .filter(|place| self.columns[*place].fit == Fit::Cut && widths[*place] > NARROWEST)
                .max_by_key(|place| widths[*place]);
            let Some(widest) = widest else { break };
            widths[widest] -= 1;
        }
        widths
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        line(f, &self.columns.map(|column| column.title.to_owned()), &widths)?;
        for row in &self.rows {
            writeln!(f)?;
            line(f, row, &widths)?;
        }
        Ok(())
    }
}

fn line<const N: usize>(f: &mut fmt::Formatter<'_>, cells: &[String; N], widths: &[usize; N]) -> fmt::Result {
    let mut text = String::with_capacity(WIDTH);
    for (cell, width) in cells.iter().zip(widths) {
        text.push_str(&format!("{:<width$}", shorten(cell, *width)));
        text.push_str(&" ".repeat(GAP));
    }
    f.write_str(text.trim_end())
}

/// Cuts a text to `width` characters, the last three of which then are dots.
fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(3)).collect();
    format!("{kept}...")
}

/// Returns a text that cannot move the cursor, change colours or turn the line around.
pub(crate) fn clean(text: &str) -> String {
    let is_harmful = |character: char| {
        character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_harmful) {
        return text.to_owned();
    }
    text.chars()
        .flat_map(|character| match character {
            '\n' | '\r' | '\t' => vec![' '],
            harmful if is_harmful(harmful) => harmful.escape_unicode().collect(),
            harmless => vec![harmless],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column::whole("ID"), Column::cut("TYPE"), Column::cut("ERROR")];

    fn table(kind: &str, error: &str) -> String {
        let mut table = Table::new(COLUMNS);
        table.row([
            "01JDZ6W2Q8M3T5V7X9YBCDEFGH".to_owned(),
            kind.to_owned(),
            error.to_owned(),
        ]);
        table.to_string()
    }

    fn longest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn a_line_of_eighty_is_whole_and_one_more_is_cut() {
        // 26 + 2 + 10 + 2 = 40
        let at = table("0123456789", &"e".repeat(40));
        let past = table("0123456789", &"e".repeat(41));

        assert_eq!(longest(&at), 80);
        assert!(!at.contains("..."));
        assert_eq!(longest(&past), 80);
        assert!(past.ends_with("e..."));
    }

    #[test]
    fn an_id_is_never_cut() {
        let text = table(&"t".repeat(200), &"e".repeat(200));

        assert!(text.contains("01JDZ6W2Q8M3T5V7X9YBCDEFGH "));
        assert_eq!(longest(&text), 80);
    }

    #[test]
    fn what_others_wrote_cannot_control_the_terminal() {
        let text = table("\x1b[31mred", "a\nb\u{202e}c");

        assert!(!text.contains('\x1b'));
        assert!(text.contains("\\u{1b}[31mred"));
        assert!(text.contains("a b\\u{202e}c"));
    }
}
