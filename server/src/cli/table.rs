//! Tables for people: no borders, numbers to the right.

use super::Done;
use super::client::Output;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;

/// A table under construction. A header that begins with `>` is of a column of numbers.
pub struct Sheet(Table);

impl Sheet {
    /// With these columns.
    pub fn new(header: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(NOTHING);
        table.set_header(
            header
                .iter()
                .map(|name| name.trim_start_matches('>').to_uppercase()),
        );
        for (index, name) in header.iter().enumerate() {
            let Some(column) = table.column_mut(index) else {
                continue;
            };
            column.set_padding((0, 2));
            if name.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self(table)
    }

    /// One more row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.add_row(cells.into_iter().collect::<Vec<_>>());
    }
}

/// Prints the thing itself for programs, or what `draw` makes of it for people.
pub fn print<T: Serialize>(output: Output, value: &T, draw: impl FnOnce(&T) -> Vec<Block>) -> Done {
    let text = match output {
        Output::Json => serde_json::to_string_pretty(value)?,
        Output::Table => draw(value)
            .iter()
            .map(Block::text)
            .collect::<Vec<_>>()
            .join("\n")
            .split_inclusive('\n')
            .map(seen)
            .collect(),
    };
    write_out(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A line as a terminal may have it: what would move its cursor or turn the line round is spelled out. Text of people is
/// checked when it comes in; journals from before hold what was not.
fn seen(line: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' | '\t' => letter.to_string(),
        other if contract::is_unseen(other) => other.escape_unicode().to_string(),
        other => other.to_string(),
    };
    line.chars().map(shown).collect()
}

/// Writes to standard output; a reader that has gone (`| head`) is no error.
pub fn write_out(text: &str) -> io::Result<()> {
    match writeln!(io::stdout().lock(), "{}", text.trim_end()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// A piece of an answer.
pub enum Block {
    /// A table.
    Sheet(Sheet),
    /// A line or more of text.
    Text(String),
}

impl Block {
    fn text(&self) -> String {
        match self {
            Self::Sheet(sheet) => {
                let lines: Vec<_> = sheet
                    .0
                    .lines()
                    .map(|line| line.trim_end().to_owned())
                    .collect();
                lines.join("\n") + "\n"
            }
            Self::Text(text) => format!("{text}\n"),
        }
    }
}

impl From<Sheet> for Block {
    fn from(sheet: Sheet) -> Self {
        Self::Sheet(sheet)
    }
}
impl From<String> for Block {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A time as people read it: to the second, with its zone.
pub fn time(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_escape_and_no_turned_line() {
        let line = "cancelled by ada: \u{1b}[2J\u{202e}abc\n";
        assert_eq!(seen(line), "cancelled by ada: \\u{1b}[2J\\u{202e}abc\n");
    }
}
