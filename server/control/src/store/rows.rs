//! Many rows in few statements: a statement through the driver costs some twenty microseconds, whatever it does.

use super::{Deed, Stored};
use sqlx::Sqlite;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection};

/// Rows in one statement. Few sizes, so that each statement is prepared once and found again.
const CHUNKS: [usize; 4] = [256, 32, 4, 1];

/// An `INSERT` of many rows.
pub(super) struct Insert {
    /// `INSERT INTO t (a, b) VALUES `
    pub(super) head: &'static str,
    /// Values of each row.
    pub(super) columns: usize,
    /// `ON CONFLICT ...`, or nothing.
    pub(super) tail: &'static str,
    /// What it is, for the error.
    pub(super) deed: &'static str,
}

/// A statement that takes one more value at a time.
pub(super) type Statement<'q> = Query<'q, Sqlite, SqliteArguments<'q>>;

impl Insert {
    /// Inserts all rows; `bind` gives the values of one row in the order of the columns.
    pub(super) async fn run<'q, R>(
        &'q self,
        connection: &mut SqliteConnection,
        rows: &'q [R],
        bind: impl Fn(Statement<'q>, &'q R) -> Statement<'q> + Send,
    ) -> Stored<()>
    where
        R: Sync,
    {
        let mut left = rows;
        for size in CHUNKS {
            if left.len() < size {
                continue;
            }
            let sql = interned(&self.sql(size));
            while left.len() >= size {
                let (chunk, rest) = left.split_at(size);
                left = rest;
                self.run_chunk(&mut *connection, sql, chunk, &bind).await?;
            }
        }
        Ok(())
    }

    async fn run_chunk<'q, R>(
        &self,
        connection: &mut SqliteConnection,
        sql: &'static str,
        chunk: &'q [R],
        bind: &(impl Fn(Statement<'q>, &'q R) -> Statement<'q> + Send),
    ) -> Stored<()>
    where
        R: Sync,
    {
        let statement = chunk.iter().fold(sqlx::query(sql), bind);
        statement
            .execute(connection)
            .await
            .deed(self.deed)
            .map(drop)
    }

    fn sql(&self, rows: usize) -> String {
        let row = format!("({})", vec!["?"; self.columns].join(", "));
        format!("{}{}{}", self.head, vec![row; rows].join(", "), self.tail)
    }
}

/// Keeps each of the few statement texts for good.
fn interned(sql: &str) -> &'static str {
    use std::collections::BTreeSet;
    use std::sync::Mutex;
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(text) = texts.get(sql) {
        return text;
    }
    let text: &'static str = Box::leak(sql.to_owned().into_boxed_str());
    texts.insert(text);
    text
}
