//! The journal's format, and the chain of checksums that finds what was removed, reordered or altered.
//!
//! | version | an entry is | proved by |
//! | --- | --- | --- |
//! | 1 | its event's JSON | its number, and where everything that is kept beside it ends |
//! | 2 | the same, and a checksum | SHA-256 over the checksum before it, its number (8 bytes, the highest first), its JSON |
//!
//! A journal is of version 1 up to some entry, which may be none, and of version 2 from there on; `journal_formats` says
//! from where, with the *anchor*: the checksum that the last entry of version 1 would have, so that from then on those are
//! proved, too, all of them together. Every version is read for ever: `server/control/tests/fixtures` keeps one of each.
//!
//! SHA-256, since the house proves its snapshots with it, and since a cheaper sum (CRC) is made to match in a moment by
//! whoever alters a row on purpose. It is no signature: who can write the file can make the whole chain anew.

use super::journal::Entry;
use super::{Deed, StoreError, Stored, read_fact};
use crate::words;
use scheduler::Event;
use sha2::{Digest, Sha256};
use sqlx::sqlite::SqliteConnection;
use std::fmt;
use thiserror::Error;

/// The version that new entries are written in.
const VERSION: i64 = 2;
/// The fact that says up to which entry the journal was written, and that entry's checksum.
pub(super) const WRITTEN: &str = "journal_end";
/// Entries looked at in one go for where a wrong one comes from, or for the anchor.
const CHUNK: u32 = 5_000;

/// A checksum of an entry and of all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sum([u8; 32]);

impl Sum {
    /// Of no entry.
    const NONE: Self = Self([0; 32]);

    /// Of one more entry.
    fn and(self, seq: u64, body: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(seq.to_be_bytes());
        hash.update(body.as_bytes());
        Self(hash.finalize().into())
    }

    /// As the store has it.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.try_into().ok()?))
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Flaw {
    /// It is not there.
    #[error("it is missing; {follows} follows")]
    Missing {
        /// What is there instead.
        follows: u64,
    },
    /// It and perhaps more after it are not there.
    #[error("it is missing; the journal ends at {end}, and was written up to {written}")]
    Cut {
        /// The last one that is there.
        end: u64,
        /// The last one that was written.
        written: u64,
    },
    /// It has been added by another hand.
    #[error("it was never written; the last one that was is {written}")]
    Added {
        /// The last one that was written.
        written: u64,
    },
    /// It should have a checksum.
    #[error("it has no checksum, and entries have one from {first} on")]
    Bare {
        /// The first one of version 2.
        first: u64,
    },
    /// It should have none.
    #[error("it has a checksum, and entries have none before {first}")]
    Dressed {
        /// The first one of version 2.
        first: u64,
    },
    /// It has a checksum, and what is noted of where they begin is lost.
    #[error("it has a checksum, and the note of where they begin is not there")]
    Formatless,
    /// What the writer notes of the end is no number.
    #[error("it may not be the last one: what is noted of the journal's end cannot be read")]
    UnreadableEnd,
    /// Its checksum is not that of what is there.
    #[error("it is not as it was written: its checksum is of something else")]
    Altered,
    /// It is there, in another place.
    #[error("it is not as it was written: what belongs here stands at {at}")]
    Moved {
        /// Where.
        at: u64,
    },
    /// It is another one once more.
    #[error("it is not as it was written: it repeats {of}")]
    Repeated {
        /// Which.
        of: u64,
    },
    /// One of the entries of version 1 is another one.
    #[error("it, or another one up to {last}, is not as it was when checksums began")]
    BeforeChecksums {
        /// The last entry of version 1.
        last: u64,
    },
    /// The last one is another one.
    #[error("it is not the one that was written last")]
    OtherEnd,
    /// What lists find it by is another entry's.
    #[error("its columns `at`, `job` and `kind` are not those of its event")]
    Columns,
}

/// An entry as it is stored.
#[derive(sqlx::FromRow)]
struct Row {
    seq: i64,
    at: i64,
    job: Option<i64>,
    kind: String,
    body: String,
    sum: Option<Vec<u8>>,
}

impl Row {
    fn entry(self) -> Stored<Entry> {
        let seq = self.seq as u64;
        let event: Event =
            serde_json::from_str(&self.body).map_err(|source| StoreError::Entry { seq, source })?;
        let columns = (
            event.at.0 as i64,
            event.fact.job().map(|job| job.0 as i64),
            words::kind_of(&event.fact),
        );
        match columns == (self.at, self.job, self.kind.as_str()) {
            true => Ok(Entry { seq, event }),
            false => Err(flawed(seq, Flaw::Columns)),
        }
    }

    fn sum(&self) -> Option<Sum> {
        Sum::from_bytes(self.sum.as_deref()?)
    }
}

fn flawed(seq: u64, flaw: Flaw) -> StoreError {
    StoreError::Flawed { seq, flaw }
}

/// From where a journal is of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Format {
    first: u64,
    anchor: Sum,
}

const ROWS: &str =
    "SELECT seq, at, job, kind, body, sum FROM journal WHERE seq > ? ORDER BY seq LIMIT ?";
/// Of a folder that has never been opened since there are checksums.
const ROWS_BEFORE: &str =
    "SELECT seq, at, job, kind, body, NULL AS sum FROM journal WHERE seq > ? ORDER BY seq LIMIT ?";

/// The statement for rows, and the format, of a database of any version.
async fn format_of(connection: &mut SqliteConnection) -> Stored<(&'static str, Option<Format>)> {
    let known: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_master WHERE name = 'journal_formats'")
            .fetch_one(&mut *connection)
            .await
            .deed("look for the journal's format")?;
    if known == 0 {
        return Ok((ROWS_BEFORE, None));
    }
    let row: Option<(i64, Vec<u8>)> =
        sqlx::query_as("SELECT first, anchor FROM journal_formats WHERE version = ?")
            .bind(VERSION)
            .fetch_optional(connection)
            .await
            .deed("read the journal's format")?;
    let format = row.map(|(first, anchor)| Format {
        first: first as u64,
        // An anchor of another length is that of no journal: the entry at it is named.
        anchor: Sum::from_bytes(&anchor).unwrap_or(Sum::NONE),
    });
    Ok((ROWS, format))
}

/// Whether new entries carry checksums already.
pub(super) async fn has_checksums(connection: &mut SqliteConnection) -> Stored<bool> {
    Ok(format_of(connection).await?.1.is_some())
}

/// A walk along the journal that proves every entry against the one before it.
pub(crate) struct Chain {
    /// The last entry taken.
    seq: u64,
    /// Its checksum; `None` where that needs entries of version 1 from before the walk began.
    sum: Option<Sum>,
    format: Option<Format>,
    rows: &'static str,
}

impl Chain {
    /// Begins after an entry, which is believed.
    pub(crate) async fn after(connection: &mut SqliteConnection, seq: u64) -> Stored<Self> {
        let (rows, format) = format_of(connection).await?;
        let sum = match format {
            _ if seq == 0 => Some(Sum::NONE),
            Some(format) if seq + 1 == format.first => Some(format.anchor),
            Some(format) if seq >= format.first => {
                let sum = sum_of(connection, seq).await?;
                Some(sum.ok_or(flawed(
                    seq,
                    Flaw::Bare {
                        first: format.first,
                    },
                ))?)
            }
            _ => None,
        };
        Ok(Self {
            seq,
            sum,
            format,
            rows,
        })
    }

    /// The next entries, at most `limit`, each proved; none at the end.
    ///
    /// # Errors
    /// The first entry that is not as it was written.
    pub(crate) async fn next(
        &mut self,
        connection: &mut SqliteConnection,
        limit: u32,
    ) -> Stored<Vec<Entry>> {
        let rows = self.proved(connection, limit).await?;
        rows.into_iter().map(Row::entry).collect()
    }

    /// Proves the next entries, at most `limit`, without reading what they say; false at the end, and once those up to
    /// `last` are proved.
    pub(crate) async fn prove(
        &mut self,
        connection: &mut SqliteConnection,
        limit: u32,
        last: u64,
    ) -> Stored<bool> {
        let rows = self.proved(connection, limit).await?;
        Ok(!rows.is_empty() && self.seq < last)
    }

    async fn proved(&mut self, connection: &mut SqliteConnection, limit: u32) -> Stored<Vec<Row>> {
        let rows = rows_after(connection, self.rows, self.seq, limit).await?;
        for row in &rows {
            if let Err((seq, flaw)) = self.take(row) {
                let flaw = self.where_from(connection, row, flaw).await?;
                return Err(flawed(seq, flaw));
            }
        }
        Ok(rows)
    }

    fn take(&mut self, row: &Row) -> Result<(), (u64, Flaw)> {
        let (seq, next) = (row.seq as u64, self.seq + 1);
        if seq != next {
            return Err((next, Flaw::Missing { follows: seq }));
        }
        let made = self.sum.map(|sum| sum.and(seq, &row.body));
        self.sum = match self.format {
            Some(Format { first, .. }) if seq >= first => {
                let kept = row.sum().ok_or((seq, Flaw::Bare { first }))?;
                if made != Some(kept) {
                    return Err((seq, Flaw::Altered));
                }
                Some(kept)
            }
            Some(Format { first, .. }) if row.sum.is_some() => {
                return Err((seq, Flaw::Dressed { first }));
            }
            None if row.sum.is_some() => return Err((seq, Flaw::Formatless)),
            Some(Format { first, anchor }) if seq + 1 == first => {
                if made.is_some_and(|made| made != anchor) {
                    return Err((1, Flaw::BeforeChecksums { last: seq }));
                }
                Some(anchor)
            }
            _ => made,
        };
        self.seq = seq;
        Ok(())
    }

    /// More of a wrong entry: whether it is another one's copy, or where its own content stands. Reads all that there is.
    async fn where_from(
        &self,
        connection: &mut SqliteConnection,
        wrong: &Row,
        flaw: Flaw,
    ) -> Stored<Flaw> {
        if !matches!(flaw, Flaw::Altered | Flaw::Bare { .. }) {
            return Ok(flaw);
        }
        let (mut after, mut moved) = (0, None);
        loop {
            let rows = rows_after(connection, self.rows, after, CHUNK).await?;
            let Some(last) = rows.last() else {
                return Ok(moved.map_or(flaw, |at| Flaw::Moved { at }));
            };
            after = last.seq as u64;
            for row in rows.iter().filter(|row| row.seq != wrong.seq) {
                if row.body == wrong.body || (row.sum.is_some() && row.sum == wrong.sum) {
                    return Ok(Flaw::Repeated { of: row.seq as u64 });
                }
                let here = self.sum.map(|sum| sum.and(self.seq + 1, &row.body));
                if moved.is_none() && here.is_some() && (here == row.sum() || here == wrong.sum()) {
                    moved = Some(row.seq as u64);
                }
            }
        }
    }

    /// At the journal's end: it is where the writer has noted that it is.
    pub(crate) async fn check_end(&self, connection: &mut SqliteConnection) -> Stored<()> {
        let Some((written, sum)) = written_end(connection).await? else {
            return Ok(());
        };
        let end = self.seq;
        if written > end {
            return Err(flawed(end + 1, Flaw::Cut { end, written }));
        }
        if written < end {
            return Err(flawed(written + 1, Flaw::Added { written }));
        }
        match (sum, self.sum) {
            (Some(noted), Some(sum)) if noted != sum.to_string() => {
                Err(flawed(end, Flaw::OtherEnd))
            }
            _ => Ok(()),
        }
    }
}

/// The last entry as the writer noted it, with its checksum in hexadecimal where it has one.
pub(super) async fn written_end(
    connection: &mut SqliteConnection,
) -> Stored<Option<(u64, Option<String>)>> {
    let Some(note) = read_fact(&mut *connection, WRITTEN).await? else {
        return Ok(None);
    };
    let (seq, sum) = match note.split_once(' ') {
        Some((seq, sum)) => (seq, Some(sum.to_owned())),
        None => (note.as_str(), None),
    };
    match seq.parse() {
        Ok(seq) => Ok(Some((seq, sum))),
        Err(_) => {
            let last = super::journal::last_seq(connection).await?;
            Err(flawed(last, Flaw::UnreadableEnd))
        }
    }
}

async fn rows_after(
    connection: &mut SqliteConnection,
    sql: &'static str,
    seq: u64,
    limit: u32,
) -> Stored<Vec<Row>> {
    sqlx::query_as(sql)
        .bind(seq as i64)
        .bind(limit)
        .fetch_all(connection)
        .await
        .deed("read the journal")
}

async fn sum_of(connection: &mut SqliteConnection, seq: u64) -> Stored<Option<Sum>> {
    let sum: Option<Option<Vec<u8>>> = sqlx::query_scalar("SELECT sum FROM journal WHERE seq = ?")
        .bind(seq as i64)
        .fetch_optional(connection)
        .await
        .deed("read a checksum")?;
    Ok(sum.flatten().and_then(|sum| Sum::from_bytes(&sum)))
}

/// Where the writer goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail(Sum);

impl Tail {
    /// Of the journal as it is. One of version 1 is of version 2 from its next entry on; that reads all of it, once.
    pub(super) async fn of(connection: &mut SqliteConnection) -> Stored<Self> {
        let last = super::journal::last_seq(connection).await?;
        let (_, format) = format_of(connection).await?;
        match format {
            None => Self::begin(connection, last).await,
            Some(format) if last < format.first => Ok(Self(format.anchor)),
            Some(format) => {
                let first = format.first;
                let sum = sum_of(connection, last).await?;
                Ok(Self(sum.ok_or(flawed(last, Flaw::Bare { first }))?))
            }
        }
    }

    async fn begin(connection: &mut SqliteConnection, last: u64) -> Stored<Self> {
        let (mut seq, mut anchor) = (0, Sum::NONE);
        while seq < last {
            for row in rows_after(connection, ROWS, seq, CHUNK).await? {
                seq = row.seq as u64;
                if row.sum.is_some() {
                    return Err(flawed(seq, Flaw::Formatless));
                }
                anchor = anchor.and(seq, &row.body);
            }
        }
        sqlx::query("INSERT INTO journal_formats (version, first, anchor) VALUES (?, ?, ?)")
            .bind(VERSION)
            .bind(last as i64 + 1)
            .bind(anchor.as_bytes())
            .execute(connection)
            .await
            .deed("note the journal's format")?;
        Ok(Self(anchor))
    }

    /// The checksum of one more entry.
    pub(super) fn add(&mut self, seq: u64, body: &str) -> Sum {
        self.0 = self.0.and(seq, body);
        self.0
    }

    /// What is noted of the journal's end.
    pub(super) fn note(&self, seq: u64) -> String {
        format!("{seq} {}", self.0)
    }
}

#[cfg(test)]
mod tests;
