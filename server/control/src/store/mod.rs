//! All SQL. One file, `muster.db`: SQLite in WAL mode with synchronous=FULL, so that what was answered survives a kill.
//!
//! One connection writes what the engine decided ([`Writer`]); a small pool reads; a second small pool writes what is
//! not the engine's: tokens and web sessions.

pub(crate) mod bills;
mod chain;
pub(crate) mod claims;
mod fault;
pub(crate) mod jobs;
pub(crate) mod journal;
mod people;
#[cfg(test)]
mod plans;
mod rows;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use chain::{Chain, Flaw};
pub(crate) use claims::{Answered, ClaimRecord};
pub(crate) use fault::Obstacle;
pub(crate) use jobs::{JobCursor, JobRecord};
pub(crate) use journal::{Entry, Saves, Snapshot};
pub(crate) use people::TokenRow;
pub(crate) use write::{DayKey, Ends, KeyedSubmit, Transaction, Writer};

use journal::last_seq;
use sqlx::SqliteExecutor;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// The database's name in the data folder.
pub(crate) const FILE: &str = "muster.db";

/// The store did not do what was asked.
#[derive(Debug, Error)]
pub(crate) enum StoreError {
    /// SQLite refuses.
    #[error("the store could not {deed}")]
    Sql {
        /// What was tried.
        deed: &'static str,
        /// SQLite's word.
        #[source]
        source: sqlx::Error,
    },
    /// What is stored does not parse.
    #[error("entry {seq} of the journal does not parse")]
    Entry {
        /// Which.
        seq: u64,
        /// The parser's word.
        #[source]
        source: serde_json::Error,
    },
    /// An entry is not as it was written.
    #[error("the journal is damaged at entry {seq}: {flaw}. {}", crate::error::kept_before(*.seq))]
    Flawed {
        /// Which.
        seq: u64,
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// What is stored does not parse.
    #[error("a stored {what} does not parse")]
    Parse {
        /// What.
        what: &'static str,
        /// The parser's word.
        #[source]
        source: serde_json::Error,
    },
    /// What was written is not there any more: somebody else has changed the file.
    #[error(
        "the journal on disk ends at entry {found}, and entry {written} was written: another file has taken its place"
    )]
    Replaced {
        /// The last entry that is there.
        found: u64,
        /// The last one that was written.
        written: u64,
    },
    /// The schema is another version's.
    #[error("the database is of another version of muster")]
    Schema(#[source] sqlx::migrate::MigrateError),
}

/// Names what was tried when SQLite refuses.
pub(crate) trait Deed<T> {
    /// The same result, with the deed in its error.
    fn deed(self, deed: &'static str) -> Result<T, StoreError>;
}
impl<T> Deed<T> for Result<T, sqlx::Error> {
    fn deed(self, deed: &'static str) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Sql { deed, source })
    }
}

pub(crate) type Stored<T> = Result<T, StoreError>;

/// The key of the fact that says what a folder was made for.
pub(crate) const MADE_FOR: &str = "made_for";

/// What is known of a database that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nothing was ever written to it.
    Nothing,
    /// Something is in it, and nothing says what for.
    Unmarked,
    /// What the folder was made for.
    For(String),
}

/// A list as one value of a statement: it reads it with `json_each`.
fn json_list<T: serde::Serialize>(list: &[T]) -> String {
    // Numbers and texts always have a JSON form.
    serde_json::to_string(list).unwrap_or_default()
}

async fn read_fact(from: impl SqliteExecutor<'_>, key: &str) -> Stored<Option<String>> {
    sqlx::query_scalar("SELECT value FROM facts WHERE key = ?")
        .bind(key)
        .fetch_optional(from)
        .await
        .deed("read a fact")
}

/// A read that sees one moment of the database.
pub(crate) type Read = sqlx::Transaction<'static, sqlx::Sqlite>;

/// The database, for reading, and for writing what is not the engine's.
#[derive(Clone)]
pub(crate) struct Store {
    reads: SqlitePool,
    rest: SqlitePool,
}

/// How long the engine waits for the write lock before it stands, and others before they are told to come again: ours hold
/// it for milliseconds, on a slow disk for a second.
const LOCK_WAIT: Duration = Duration::from_secs(3);

fn connect_options(folder: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(folder.join(FILE))
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(LOCK_WAIT)
        .pragma("temp_store", "memory")
        .pragma("cache_size", "-32768")
}

impl Store {
    /// Makes the database if it is not there, brings its schema up to date, and opens it.
    pub(crate) async fn create(folder: &Path) -> Stored<Self> {
        let store = Self::connect(connect_options(folder).create_if_missing(true)).await?;
        sqlx::migrate!("src/store/migrations")
            .run(&store.rest)
            .await
            .map_err(StoreError::Schema)?;
        Ok(store)
    }

    /// Opens a database that is there, of this version; another process may be writing to it.
    pub(crate) async fn attach(folder: &Path) -> Stored<Self> {
        Self::connect(connect_options(folder)).await
    }

    /// Opens a database that nobody writes to, and leaves everything beside it as it is: what its log holds is not seen.
    pub(crate) async fn attach_still(folder: &Path) -> Stored<Self> {
        let options = SqliteConnectOptions::new()
            .filename(folder.join(FILE))
            .read_only(true)
            .immutable(true)
            .pragma("temp_store", "memory");
        Self::connect(options).await
    }

    async fn connect(options: SqliteConnectOptions) -> Stored<Self> {
        let pool = |most| {
            SqlitePoolOptions::new()
                .max_connections(most)
                .acquire_timeout(Duration::from_secs(20))
        };
        let rest = pool(2)
            .connect_with(options.clone())
            .await
            .deed("open the database")?;
        let reads = pool(4).connect_lazy_with(options);
        Ok(Self { reads, rest })
    }

    /// The pool for web sessions: their table is their library's.
    pub(crate) fn rest(&self) -> &SqlitePool {
        &self.rest
    }

    /// Begins a read of one moment. The moment is fixed by its first query.
    pub(crate) async fn read(&self) -> Stored<Read> {
        self.reads.begin().await.deed("begin a read")
    }

    /// Closes every connection.
    pub(crate) async fn close(&self) {
        self.reads.close().await;
        self.rest.close().await;
    }

    /// What a database is kept for, of any version.
    pub(crate) async fn kept(&self) -> Stored<Kept> {
        let tables: Vec<String> =
            sqlx::query_scalar("SELECT name FROM sqlite_master WHERE type = 'table'")
                .fetch_all(&self.rest)
                .await
                .deed("list the tables")?;
        let has = |table: &str| tables.iter().any(|name| name == table);
        let mark = if has("facts") {
            self.fact(MADE_FOR).await?
        } else {
            None
        };
        if let Some(mark) = mark {
            return Ok(Kept::For(mark));
        }
        // Between the first schema and the mark nothing is written but the journal's own tables.
        let ours = |name: &String| name.starts_with("_sqlx") || name.starts_with("sqlite_");
        let entries = if has("journal") {
            last_seq(&mut *self.rest.acquire().await.deed("open the database")?).await?
        } else {
            u64::from(!tables.iter().all(ours))
        };
        Ok(if entries == 0 {
            Kept::Nothing
        } else {
            Kept::Unmarked
        })
    }

    /// A single fact about the folder.
    pub(crate) async fn fact(&self, key: &str) -> Stored<Option<String>> {
        read_fact(&self.rest, key).await
    }

    /// Writes a single fact about the folder.
    pub(crate) async fn set_fact(&self, key: &str, value: &str) -> Stored<()> {
        sqlx::query("INSERT INTO facts (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
            .bind(key)
            .bind(value)
            .execute(&self.rest)
            .await
            .deed("write a fact")
            .map(drop)
    }
}
