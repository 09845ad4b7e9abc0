//! What the engine task writes: everything of one batch in one transaction.

use super::chain::{Sum, Tail, WRITTEN, has_checksums, written_end};
use super::journal::{entries_after, first_gap, last_seq};
use super::rows::Insert;
use super::{
    ClaimRecord, Deed, Entry, JobRecord, Snapshot, StoreError, Stored, connect_options, read_fact,
};
use crate::words;
use scheduler::{JobId, PersonId, UsageLine};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use std::collections::BTreeMap;
use std::path::Path;

/// The connection that writes what the engine decided. There is one.
pub(crate) struct Writer {
    connection: SqliteConnection,
    options: SqliteConnectOptions,
    /// Where the journal's checksums go on; read from it when that is not known.
    tail: Option<Tail>,
}

/// Where the journal ends, and where everything that is kept beside it says that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The last entry that is there.
    pub(crate) seq: u64,
    /// The first one before it that is not.
    pub(crate) gap: Option<u64>,
    /// The last one that was written, as the writer noted it; 0 where it did not.
    pub(crate) written: u64,
    /// The newest snapshot's.
    pub(crate) snapshot: u64,
    /// The last usage line.
    pub(crate) line: u64,
    /// The last job of the list.
    pub(crate) job: u64,
}

/// A submission that came with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyedSubmit {
    /// Who.
    pub(crate) person: PersonId,
    /// Their key.
    pub(crate) key: String,
    /// Hash of the request.
    pub(crate) hash: String,
    /// What it made.
    pub(crate) job: JobId,
}

/// What usage is summed up by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DayKey {
    /// Day of the billing zone: 20261130.
    pub(crate) day: i32,
    /// Team.
    pub(crate) team: String,
    /// Job.
    pub(crate) job: u64,
    /// Flavour; empty without GPUs.
    pub(crate) flavour: String,
    /// `own` or `borrowed`.
    pub(crate) entitlement: &'static str,
    /// `run`, ...
    pub(crate) phase: &'static str,
    /// Start of the rate card in force, in milliseconds; -1 without one.
    pub(crate) card: i64,
}

/// Everything that one transaction writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transaction {
    /// What happened, in order.
    pub(crate) entries: Vec<Entry>,
    /// Jobs that changed, as they are after it.
    pub(crate) jobs: BTreeMap<JobId, JobRecord>,
    /// Claims that changed, as they are after it, by number.
    pub(crate) claims: BTreeMap<u64, ClaimRecord>,
    /// Usage lines that were closed, with their numbers.
    pub(crate) lines: Vec<(u64, UsageLine)>,
    /// What they add to their days, in thousandths of a GPU x milliseconds.
    pub(crate) days: BTreeMap<DayKey, i64>,
    /// Keys of submissions.
    pub(crate) keys: Vec<KeyedSubmit>,
    /// Single facts.
    pub(crate) facts: Vec<(&'static str, String)>,
}

const JOURNAL: Insert = Insert {
    head: "INSERT INTO journal (seq, at, job, kind, body, sum) VALUES ",
    columns: 6,
    tail: "",
    deed: "append to the journal",
};
/// What is known of the current or last attempt stays, as in [`crate::engine::record::renew`]: a row must not depend on where
/// batches end.
const JOBS: Insert = Insert {
    head: "INSERT INTO jobs (id, name, team, project, owner, state, stopping, priority, flavours, gpus_milli, pods, \
           attempt, ran_ms, submitted, started, ended, ends_by, own_milli, borrowed_milli, place, end_cause) VALUES ",
    columns: 21,
    tail: " ON CONFLICT (id) DO UPDATE SET state = excluded.state, stopping = excluded.stopping, \
           flavours = excluded.flavours, gpus_milli = excluded.gpus_milli, pods = excluded.pods, \
           attempt = excluded.attempt, ran_ms = excluded.ran_ms, \
           started = coalesce(excluded.started, started), ended = excluded.ended, ends_by = excluded.ends_by, \
           own_milli = coalesce(excluded.own_milli, own_milli), \
           borrowed_milli = coalesce(excluded.borrowed_milli, borrowed_milli), \
           place = coalesce(excluded.place, place), end_cause = excluded.end_cause",
    deed: "write the list of jobs",
};
const DETAILS: Insert = Insert {
    head: "INSERT INTO job_details (id, spec, placement) VALUES ",
    columns: 3,
    tail: " ON CONFLICT (id) DO UPDATE SET placement = coalesce(excluded.placement, placement)",
    deed: "write a job's details",
};
const CLAIMS: Insert = Insert {
    head: "INSERT INTO claims (id, stage, body) VALUES ",
    columns: 3,
    tail: " ON CONFLICT (id) DO UPDATE SET stage = excluded.stage, body = excluded.body",
    deed: "write the list of claims",
};
const CLAIM_TEAMS: Insert = Insert {
    head: "INSERT INTO claim_teams (team, claim) VALUES ",
    columns: 2,
    tail: " ON CONFLICT DO NOTHING",
    deed: "write whose affair a claim is",
};
const LINES: Insert = Insert {
    head: "INSERT INTO usage_lines (id, job, attempt, team, project, owner, flavour, entitlement, unit, phase, from_ms, \
           to_ms, gpus_milli, cpu_milli, nodes) VALUES ",
    columns: 15,
    tail: "",
    deed: "append usage lines",
};
const DAYS: Insert = Insert {
    head: "INSERT INTO usage_days (day, team, job, flavour, entitlement, phase, card, held) VALUES ",
    columns: 8,
    tail: " ON CONFLICT DO UPDATE SET held = held + excluded.held",
    deed: "add to the days' usage",
};
const KEYS: Insert = Insert {
    head: "INSERT INTO submissions (person, key, hash, job) VALUES ",
    columns: 4,
    tail: "",
    deed: "keep an idempotency key",
};
const FACTS: Insert = Insert {
    head: "INSERT INTO facts (key, value) VALUES ",
    columns: 2,
    tail: " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    deed: "write a fact",
};

impl Writer {
    /// Opens the connection. The file may grow to `pages_max` pages (what it has already stays), where that is given.
    pub(crate) async fn open(folder: &Path, pages_max: Option<u32>) -> Stored<Self> {
        let options = connect_options(folder);
        let options = match pages_max {
            Some(most) => options.pragma("max_page_count", most.to_string()),
            None => options,
        };
        let connection = connect(&options).await?;
        Ok(Self {
            connection,
            options,
            tail: None,
        })
    }

    /// Begins anew with the file after a fault: with another connection, since the old one may hold what has failed. Writes
    /// as much as a usual batch takes, and takes it back; what is left of it is room for the next one.
    pub(crate) async fn reopen(&mut self) -> Stored<()> {
        let fresh = connect(&self.options).await?;
        self.tail = None;
        let failed = std::mem::replace(&mut self.connection, fresh);
        // It may fail once more; its lock is let go either way.
        drop(failed.close().await);
        for statement in [
            "INSERT INTO facts (key, value) VALUES ('trial', hex(zeroblob(131072))) \
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            "DELETE FROM facts WHERE key = 'trial'",
        ] {
            sqlx::query(statement)
                .execute(&mut self.connection)
                .await
                .deed("write on trial")?;
        }
        Ok(())
    }

    /// Has the next entry carry a checksum, whatever those before it are: what a start does that believes them. Writes
    /// nothing where it is so already.
    pub(crate) async fn begin_checksums(&mut self) -> Stored<()> {
        match has_checksums(&mut self.connection).await? {
            true => Ok(()),
            false => self.commit(&Transaction::default()).await,
        }
    }

    /// Writes all of it, durably, or none of it.
    pub(crate) async fn commit(&mut self, batch: &Transaction) -> Stored<()> {
        let mut transaction = self
            .connection
            .begin_with("BEGIN IMMEDIATE")
            .await
            .deed("begin a transaction")?;
        // Known again when all of it is written: an answer that is an error may hide a commit.
        let mut tail = match self.tail.take() {
            Some(tail) => tail,
            None => Tail::of(&mut transaction).await?,
        };
        insert_entries(&mut transaction, &batch.entries, &mut tail).await?;
        insert_jobs(&mut transaction, batch).await?;
        insert_claims(&mut transaction, batch).await?;
        insert_usage(&mut transaction, batch).await?;
        KEYS.run(&mut transaction, &batch.keys, |row, of| {
            row.bind(of.person.as_str())
                .bind(&of.key)
                .bind(&of.hash)
                .bind(of.job.0 as i64)
        })
        .await?;
        let mut facts = batch.facts.clone();
        if let Some(last) = batch.entries.last() {
            facts.push((WRITTEN, tail.note(last.seq)));
        }
        FACTS
            .run(&mut transaction, &facts, |row, (key, value)| {
                row.bind(*key).bind(value)
            })
            .await?;
        transaction.commit().await.deed("commit")?;
        self.tail = Some(tail);
        Ok(())
    }

    /// Keeps a snapshot, and the one before it.
    pub(crate) async fn keep_snapshot(&mut self, snapshot: &Snapshot) -> Stored<()> {
        let mut transaction = self
            .connection
            .begin_with("BEGIN IMMEDIATE")
            .await
            .deed("begin a transaction")?;
        sqlx::query(
            "INSERT INTO snapshots (seq, hash, body) VALUES (?, ?, ?) \
             ON CONFLICT (seq) DO UPDATE SET hash = excluded.hash, body = excluded.body",
        )
        .bind(snapshot.seq as i64)
        .bind(&snapshot.hash)
        .bind(&snapshot.body)
        .execute(&mut *transaction)
        .await
        .deed("write a snapshot")?;
        sqlx::query("DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC LIMIT 2)")
            .execute(&mut *transaction)
            .await
            .deed("drop old snapshots")?;
        transaction.commit().await.deed("commit a snapshot")
    }

    /// The job that a key has made, with the hash of that request.
    pub(crate) async fn submission(
        &mut self,
        person: &PersonId,
        key: &str,
    ) -> Stored<Option<(String, JobId)>> {
        let row: Option<(String, i64)> =
            sqlx::query_as("SELECT hash, job FROM submissions WHERE person = ? AND key = ?")
                .bind(person.as_str())
                .bind(key)
                .fetch_optional(&mut self.connection)
                .await
                .deed("look up an idempotency key")?;
        Ok(row.map(|(hash, job)| (hash, JobId(job as u64))))
    }

    /// All entries after a number.
    pub(crate) async fn entries_after(&mut self, seq: u64) -> Stored<Vec<Entry>> {
        entries_after(&mut self.connection, seq, u32::MAX).await
    }

    /// A single fact about the folder.
    pub(crate) async fn fact(&mut self, key: &str) -> Stored<Option<String>> {
        read_fact(&mut self.connection, key).await
    }

    /// Numbers of the last journal entry and of the last usage line.
    pub(crate) async fn ends(&mut self) -> Stored<(u64, u64)> {
        let seq = last_seq(&mut self.connection).await?;
        let line: Option<i64> = sqlx::query_scalar("SELECT max(id) FROM usage_lines")
            .fetch_one(&mut self.connection)
            .await
            .deed("read the last usage line")?;
        Ok((seq, line.unwrap_or(0) as u64))
    }

    /// Where everything ends.
    pub(crate) async fn known_ends(&mut self) -> Stored<Ends> {
        let (seq, line) = self.ends().await?;
        let written = written_end(&mut self.connection).await?;
        let (entries, snapshot, job): (i64, i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM journal), (SELECT coalesce(max(seq), 0) FROM snapshots), \
             (SELECT coalesce(max(id), 0) FROM jobs)",
        )
        .fetch_one(&mut self.connection)
        .await
        .deed("read where everything ends")?;
        let gap = match entries as u64 == seq {
            true => None,
            false => Some(first_gap(&mut self.connection).await?),
        };
        Ok(Ends {
            seq,
            gap,
            written: written.map_or(0, |(written, _)| written),
            snapshot: snapshot as u64,
            line,
            job: job as u64,
        })
    }

    /// Closes the connection, so that the log is folded into the file.
    pub(crate) async fn close(self) -> Stored<()> {
        self.connection.close().await.deed("close the database")
    }
}

async fn connect(options: &SqliteConnectOptions) -> Stored<SqliteConnection> {
    options
        .connect()
        .await
        .deed("open the database for writing")
}

async fn insert_entries(
    connection: &mut SqliteConnection,
    entries: &[Entry],
    tail: &mut Tail,
) -> Stored<()> {
    let mut rows: Vec<(&Entry, String, Sum)> = Vec::with_capacity(entries.len());
    for entry in entries {
        let body = serde_json::to_string(&entry.event).map_err(|source| StoreError::Parse {
            what: "event",
            source,
        })?;
        let sum = tail.add(entry.seq, &body);
        rows.push((entry, body, sum));
    }
    JOURNAL
        .run(connection, &rows, |row, (entry, body, sum)| {
            row.bind(entry.seq as i64)
                .bind(entry.event.at.0 as i64)
                .bind(entry.event.fact.job().map(|job| job.0 as i64))
                .bind(words::kind_of(&entry.event.fact))
                .bind(body)
                .bind(sum.as_bytes())
        })
        .await
}

async fn insert_jobs(connection: &mut SqliteConnection, batch: &Transaction) -> Stored<()> {
    let jobs: Vec<&JobRecord> = batch.jobs.values().collect();
    JOBS.run(&mut *connection, &jobs, |row, job| job.bind(row))
        .await?;
    let details: Vec<&JobRecord> = jobs
        .into_iter()
        .filter(|job| job.details.is_some())
        .collect();
    DETAILS
        .run(connection, &details, |row, job| {
            let (spec, placement) = job
                .details
                .as_ref()
                .map(|(spec, place)| (spec.as_str(), place.as_deref()))
                .unzip();
            row.bind(job.id as i64).bind(spec).bind(placement.flatten())
        })
        .await
}

async fn insert_claims(connection: &mut SqliteConnection, batch: &Transaction) -> Stored<()> {
    let mut rows = Vec::with_capacity(batch.claims.len());
    for (id, record) in &batch.claims {
        let body = serde_json::to_string(record).map_err(|source| StoreError::Parse {
            what: "claim",
            source,
        })?;
        rows.push((*id, record.stage.as_str(), body));
    }
    CLAIMS
        .run(&mut *connection, &rows, |row, (id, stage, body)| {
            row.bind(*id as i64).bind(*stage).bind(body)
        })
        .await?;
    let teams = batch.claims.iter();
    let teams: Vec<_> = teams
        .flat_map(|(id, record)| record.teams().map(move |team| (team.as_str(), *id)))
        .collect();
    CLAIM_TEAMS
        .run(connection, &teams, |row, (team, id)| {
            row.bind(*team).bind(*id as i64)
        })
        .await
}

async fn insert_usage(connection: &mut SqliteConnection, batch: &Transaction) -> Stored<()> {
    LINES
        .run(&mut *connection, &batch.lines, |row, (id, line)| {
            row.bind(*id as i64)
                .bind(line.job.0 as i64)
                .bind(line.attempt)
                .bind(line.team.as_str())
                .bind(&line.project)
                .bind(line.owner.as_str())
                .bind(words::flavour_of(line))
                .bind(words::entitlement(line.entitlement))
                .bind(words::unit(line.unit))
                .bind(words::phase(line.phase))
                .bind(line.from.0 as i64)
                .bind(line.to.0 as i64)
                .bind(line.gpus.0 as i64)
                .bind(line.cpu_milli as i64)
                .bind(line.nodes)
        })
        .await?;
    let days: Vec<(&DayKey, &i64)> = batch.days.iter().collect();
    DAYS.run(connection, &days, |row, (key, held)| {
        row.bind(key.day)
            .bind(&key.team)
            .bind(key.job as i64)
            .bind(&key.flavour)
            .bind(key.entitlement)
            .bind(key.phase)
            .bind(key.card)
            .bind(**held)
    })
    .await
}
