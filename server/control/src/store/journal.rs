//! The journal and its snapshots, read.

use super::{Deed, Read, Store, StoreError, Stored};
use scheduler::{Event, JobId, Millis};
use sqlx::sqlite::SqliteConnection;
use std::collections::BTreeMap;

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
    /// What proves it: see `seal_of`.
    pub(crate) hash: String,
    /// The state and the meter, as JSON.
    pub(crate) body: Vec<u8>,
}

type Row = (i64, String);

pub(super) fn entry((seq, body): Row) -> Stored<Entry> {
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

/// The first number that is missing below the last one.
pub(super) async fn first_gap(connection: &mut SqliteConnection) -> Stored<u64> {
    let before: Option<i64> = sqlx::query_scalar(
        "SELECT before FROM (SELECT seq, lag(seq, 1, 0) OVER (ORDER BY seq) AS before FROM journal) \
         WHERE seq <> before + 1 ORDER BY seq LIMIT 1",
    )
    .fetch_optional(connection)
    .await
    .deed("look for a gap in the journal")?;
    Ok(before.unwrap_or(0) as u64 + 1)
}

impl Store {
    /// The newest snapshot before an entry.
    pub(crate) async fn snapshot_before(&self, seq: u64) -> Stored<Option<Snapshot>> {
        let row: Option<(i64, String, Vec<u8>)> = sqlx::query_as(
            "SELECT seq, hash, body FROM snapshots WHERE seq < ? ORDER BY seq DESC LIMIT 1",
        )
        .bind(i64::try_from(seq).unwrap_or(i64::MAX))
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
pub(super) async fn entries_after(
    connection: &mut SqliteConnection,
    seq: u64,
    limit: u32,
) -> Stored<Vec<Entry>> {
    let rows: Vec<Row> =
        sqlx::query_as("SELECT seq, body FROM journal WHERE seq > ? ORDER BY seq LIMIT ?")
            .bind(seq as i64)
            .bind(limit)
            .fetch_all(connection)
            .await
            .deed("read the journal")?;
    rows.into_iter().map(entry).collect()
}

pub(super) const OF_JOB: &str =
    "SELECT seq, body FROM journal WHERE job = ? AND seq > ? ORDER BY seq LIMIT ?";
pub(super) const LAST_OF_JOB: &str =
    "SELECT seq, body FROM journal WHERE job = ? ORDER BY seq DESC LIMIT ?";

/// A job's entries after a number, oldest first, at most `limit`.
pub(crate) async fn of_job(
    read: &mut Read,
    job: JobId,
    seq: u64,
    limit: u32,
) -> Stored<Vec<Entry>> {
    let rows: Vec<Row> = sqlx::query_as(OF_JOB)
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
    let rows: Vec<Row> = sqlx::query_as(LAST_OF_JOB)
        .bind(job.0 as i64)
        .bind(limit)
        .fetch_all(&mut **read)
        .await
        .deed("read a job's last events")?;
    rows.into_iter().map(entry).collect()
}

/// The entries of a job but its saves, as `journal_lives` has them.
pub(super) const LIFE: &str = "SELECT seq, body FROM journal WHERE job = ? AND job IS NOT NULL \
     AND kind NOT IN ('checkpoint_started', 'checkpoint_saved') ORDER BY seq";
/// How many of its saves are durable. This and the next ones are as `journal_saves` has them.
pub(super) const SAVED: &str = "SELECT count(*) FROM journal WHERE job = ? \
     AND kind IN ('checkpoint_started', 'checkpoint_saved') AND kind = 'checkpoint_saved'";
pub(super) const LAST_SAVED: &str = "SELECT seq, body FROM journal WHERE job = ? \
     AND kind IN ('checkpoint_started', 'checkpoint_saved') AND kind = 'checkpoint_saved' \
     ORDER BY seq DESC LIMIT ?";
/// Where the saves up to that entry began: from the last beginning before it on.
pub(super) const BEGINNINGS: &str = "SELECT seq, body FROM journal WHERE job = ?1 \
     AND kind IN ('checkpoint_started', 'checkpoint_saved') AND kind = 'checkpoint_started' \
     AND seq >= coalesce((SELECT max(seq) FROM journal WHERE job = ?1 \
         AND kind IN ('checkpoint_started', 'checkpoint_saved') AND kind = 'checkpoint_started' AND seq < ?2), ?2) \
     ORDER BY seq DESC LIMIT ?3";
pub(super) const SAVED_BEFORE: &str = "SELECT cut.value, (SELECT at FROM journal WHERE job = ?1 \
         AND kind IN ('checkpoint_started', 'checkpoint_saved') AND kind = 'checkpoint_saved' AND seq < cut.value \
         ORDER BY seq DESC LIMIT 1) \
     FROM json_each(?2) AS cut";
/// A save may be begun and cut off: so many beginnings are looked at for each one that is durable.
const BEGINNINGS_MAX: u32 = 4;

/// A job's entries but its saves, oldest first: few, however long it ran.
pub(crate) async fn life_of_job(read: &mut Read, job: JobId) -> Stored<Vec<Entry>> {
    let rows: Vec<Row> = sqlx::query_as(LIFE)
        .bind(job.0 as i64)
        .fetch_all(&mut **read)
        .await
        .deed("read a job's life")?;
    rows.into_iter().map(entry).collect()
}

/// The last saves of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saves {
    /// How many it has that are durable.
    pub(crate) count: u64,
    /// The last ones of them and where they began, oldest first.
    pub(crate) last: Vec<Entry>,
}

/// A job's last durable saves, at most `limit`, with where they began.
pub(crate) async fn saves_of_job(read: &mut Read, job: JobId, limit: u32) -> Stored<Saves> {
    let id = job.0 as i64;
    let count: i64 = sqlx::query_scalar(SAVED)
        .bind(id)
        .fetch_one(&mut **read)
        .await
        .deed("count a job's saves")?;
    let mut rows: Vec<Row> = sqlx::query_as(LAST_SAVED)
        .bind(id)
        .bind(limit)
        .fetch_all(&mut **read)
        .await
        .deed("read a job's saves")?;
    if let Some((oldest, _)) = rows.last() {
        let begun: Vec<Row> = sqlx::query_as(BEGINNINGS)
            .bind(id)
            .bind(*oldest)
            .bind(limit * BEGINNINGS_MAX)
            .fetch_all(&mut **read)
            .await
            .deed("read where a job's saves began")?;
        rows.extend(begun);
    }
    rows.sort_unstable_by_key(|(seq, _)| *seq);
    Ok(Saves {
        count: count as u64,
        last: rows.into_iter().map(entry).collect::<Stored<_>>()?,
    })
}

/// When the last durable save before each of these entries of a job was; nothing for those before its first one.
pub(crate) async fn saved_before(
    read: &mut Read,
    job: JobId,
    entries: &[u64],
) -> Stored<BTreeMap<u64, Millis>> {
    if entries.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows: Vec<(i64, Option<i64>)> = sqlx::query_as(SAVED_BEFORE)
        .bind(job.0 as i64)
        .bind(super::json_list(entries))
        .fetch_all(&mut **read)
        .await
        .deed("read the saves before a job's interruptions")?;
    let known = rows.into_iter();
    Ok(known
        .filter_map(|(seq, at)| Some((seq as u64, Millis(at? as u64))))
        .collect())
}
