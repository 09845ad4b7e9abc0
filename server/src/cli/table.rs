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
            .join("\n"),
    };
    write_out(&text)?;
    Ok(ExitCode::SUCCESS)
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
