//! The journal and its snapshots, read.

use super::{Deed, Read, Store, StoreError, Stored};
use scheduler::{Event, JobId};
use sqlx::sqlite::SqliteConnection;

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its number, from 1 without gaps.
    pub(crate) seq: u64,
    /// What happened.
    pub(crate) event: Event,
}

/// A fold up to an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// The last entry in it.
    pub(crate) seq: u64,
    /// Hash of the state.
    pub(crate) hash: String,
    /// The state and the meter, as JSON.
    pub(crate) body: Vec<u8>,
}

type Row = (i64, String);

fn entry((seq, body): Row) -> Stored<Entry> {
    let seq = seq as u64;
    let event = serde_json::from_str(&body).map_err(|source| StoreError::Entry { seq, source })?;
    Ok(Entry { seq, event })
}

/// The journal's last number; 0 when it is empty.
pub(crate) async fn last_seq(connection: &mut SqliteConnection) -> Stored<u64> {
    let last: Option<i64> = sqlx::query_scalar("SELECT max(seq) FROM journal")
        .fetch_one(connection)
        .await
        .deed("read the journal's end")?;
    Ok(last.unwrap_or(0) as u64)
}

impl Store {
    /// The newest snapshot.
    pub(crate) async fn newest_snapshot(&self) -> Stored<Option<Snapshot>> {
        let row: Option<(i64, String, Vec<u8>)> =
            sqlx::query_as("SELECT seq, hash, body FROM snapshots ORDER BY seq DESC LIMIT 1")
                .fetch_optional(&self.reads)
                .await
                .deed("read a snapshot")?;
        Ok(row.map(|(seq, hash, body)| Snapshot {
            seq: seq as u64,
            hash,
            body,
        }))
    }
}

/// The journal's last number in this read.
pub(crate) async fn seq_of(read: &mut Read) -> Stored<u64> {
    last_seq(read).await
}

/// Entries after a number, oldest first, at most `limit`.
pub(crate) async fn after(read: &mut Read, seq: u64, limit: u32) -> Stored<Vec<Entry>> {
    let rows: Vec<Row> =
        sqlx::query_as("SELECT seq, body FROM journal WHERE seq > ? ORDER BY seq LIMIT ?")
            .bind(seq as i64)
            .bind(limit)
            .fetch_all(&mut **read)
            .await
            .deed("read the journal")?;
    rows.into_iter().map(entry).collect()
}

/// A job's entries after a number, oldest first, at most `limit`.
pub(crate) async fn of_job(
    read: &mut Read,
    job: JobId,
    seq: u64,
    limit: u32,
) -> Stored<Vec<Entry>> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT seq, body FROM journal WHERE job = ? AND seq > ? ORDER BY seq LIMIT ?",
    )
    .bind(job.0 as i64)
    .bind(seq as i64)
    .bind(limit)
    .fetch_all(&mut **read)
    .await
    .deed("read a job's events")?;
    rows.into_iter().map(entry).collect()
}

/// A job's last entries, newest first.
pub(crate) async fn last_of_job(read: &mut Read, job: JobId, limit: u32) -> Stored<Vec<Entry>> {
    let rows: Vec<Row> =
        sqlx::query_as("SELECT seq, body FROM journal WHERE job = ? ORDER BY seq DESC LIMIT ?")
            .bind(job.0 as i64)
            .bind(limit)
            .fetch_all(&mut **read)
            .await
            .deed("read a job's last events")?;
    rows.into_iter().map(entry).collect()
}

/// A job's entries but its saves, oldest first: few, however long it ran.
pub(crate) async fn life_of_job(read: &mut Read, job: JobId) -> Stored<Vec<Entry>> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT seq, body FROM journal WHERE job = ? AND kind NOT IN ('checkpoint_started', 'checkpoint_saved') ORDER BY seq",
    )
    .bind(job.0 as i64)
    .fetch_all(&mut **read)
    .await
    .deed("read a job's life")?;
    rows.into_iter().map(entry).collect()
}

/// A job's saves, oldest first: begun and durable ones.
pub(crate) async fn saves_of_job(read: &mut Read, job: JobId) -> Stored<Vec<Entry>> {
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT seq, body FROM journal WHERE job = ? AND kind IN ('checkpoint_started', 'checkpoint_saved') ORDER BY seq",
    )
    .bind(job.0 as i64)
    .fetch_all(&mut **read)
    .await
    .deed("read a job's saves")?;
    rows.into_iter().map(entry).collect()
}
