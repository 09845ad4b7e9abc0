//! The list of claims: the open ones and those that are over.

use super::{Deed, Entry, Read, StoreError, Stored, json_list};
use contract::{ReclaimFilter, ReclaimStage};
use scheduler::{Claim, ClaimId, JobId, Millis, PersonId, TeamId, Withdrawal};
use serde::{Deserialize, Serialize};
use sqlx::{QueryBuilder, Sqlite};
use std::collections::{BTreeMap, BTreeSet};

/// A yes or a no.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answered {
    /// When.
    pub(crate) at: Millis,
    /// By whom; `None` = by its deadline.
    pub(crate) by: Option<PersonId>,
    /// The reason that was given.
    pub(crate) why: Option<String>,
}

/// A claim as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClaimRecord {
    /// How far it has come.
    pub(crate) stage: ReclaimStage,
    /// When it was first told of.
    pub(crate) asked: Millis,
    /// The last answer, unless other victims had to be asked for since.
    pub(crate) answered: Option<Answered>,
    /// When its victims were told to go.
    pub(crate) made: Option<Millis>,
    /// When it was over.
    pub(crate) ended: Option<Millis>,
    /// Why it was given up.
    pub(crate) withdrawn: Option<Withdrawal>,
    /// Teams that it ever named a victim of.
    pub(crate) losers: BTreeSet<TeamId>,
    /// As it stands or stood last.
    pub(crate) claim: Claim,
}

impl ClaimRecord {
    /// Its number.
    pub(crate) fn id(&self) -> ClaimId {
        self.claim.id
    }

    /// The teams whose affair it is or was.
    pub(crate) fn teams(&self) -> impl Iterator<Item = &TeamId> {
        std::iter::once(&self.claim.team).chain(&self.losers)
    }
}

/// A job in few words.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Brief {
    id: i64,
    /// Its name.
    pub(crate) name: String,
    /// Its team.
    pub(crate) team: String,
    /// Its owner.
    pub(crate) owner: String,
    gpus_milli: i64,
    submitted: i64,
}

impl Brief {
    /// Its GPUs, in thousandths.
    pub(crate) fn gpus_milli(&self) -> u64 {
        self.gpus_milli as u64
    }
    /// When it was first submitted.
    pub(crate) fn submitted(&self) -> Millis {
        Millis(self.submitted as u64)
    }
}

/// One page, newest first, with the number of all that the filter matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimPage {
    /// The rows.
    pub(crate) claims: Vec<ClaimRecord>,
    /// How many there are.
    pub(crate) total: u64,
    /// True when more follow.
    pub(crate) more: bool,
}

fn parse(body: &str) -> Stored<ClaimRecord> {
    serde_json::from_str(body).map_err(|source| StoreError::Parse {
        what: "claim",
        source,
    })
}

/// Claims that match, of the teams that may be seen (`None` = all), before a number (`None` = from the newest on).
pub(crate) async fn page(
    read: &mut Read,
    filter: &ReclaimFilter,
    visible: Option<&[String]>,
    before: Option<u64>,
    limit: u32,
) -> Stored<ClaimPage> {
    let total: i64 = count_query(filter, visible)
        .build_query_scalar()
        .fetch_one(&mut **read)
        .await
        .deed("count claims")?;
    let mut bodies: Vec<String> = page_query(filter, visible, before, limit)
        .build_query_scalar()
        .fetch_all(&mut **read)
        .await
        .deed("list claims")?;
    let more = bodies.len() > limit as usize;
    bodies.truncate(limit as usize);
    Ok(ClaimPage {
        claims: bodies
            .iter()
            .map(|body| parse(body))
            .collect::<Stored<_>>()?,
        total: total as u64,
        more,
    })
}

/// How many match, from indexes alone.
pub(super) fn count_query(
    filter: &ReclaimFilter,
    visible: Option<&[String]>,
) -> QueryBuilder<'static, Sqlite> {
    let mut query = QueryBuilder::new("SELECT count(*) FROM claims WHERE 1 = 1");
    push_filter(&mut query, filter, visible);
    query
}

/// One page and one row more.
pub(super) fn page_query(
    filter: &ReclaimFilter,
    visible: Option<&[String]>,
    before: Option<u64>,
    limit: u32,
) -> QueryBuilder<'static, Sqlite> {
    let before = before.map_or(i64::MAX, |before| before as i64);
    let mut query =
        QueryBuilder::new("SELECT body FROM claims WHERE id IN (SELECT id FROM claims WHERE id < ");
    query.push_bind(before);
    push_filter(&mut query, filter, visible);
    query
        .push(" ORDER BY id DESC LIMIT ")
        .push_bind(i64::from(limit) + 1)
        .push(") ORDER BY id DESC");
    query
}

fn push_filter(
    query: &mut QueryBuilder<'_, Sqlite>,
    filter: &ReclaimFilter,
    visible: Option<&[String]>,
) {
    if let Some(visible) = visible {
        push_teams(query, visible);
    }
    if !filter.teams.is_empty() {
        push_teams(query, &filter.teams);
    }
    if !filter.stages.is_empty() {
        let stages: Vec<&str> = filter.stages.iter().map(|stage| stage.as_str()).collect();
        query.push(" AND stage IN (SELECT value FROM json_each(");
        query.push_bind(json_list(&stages)).push("))");
    }
}

fn push_teams(query: &mut QueryBuilder<'_, Sqlite>, teams: &[String]) {
    query.push(
        " AND id IN (SELECT claim FROM claim_teams WHERE team IN (SELECT value FROM json_each(",
    );
    query.push_bind(json_list(teams)).push(")))");
}

/// One claim.
pub(crate) async fn one(read: &mut Read, claim: ClaimId) -> Stored<Option<ClaimRecord>> {
    let body: Option<String> = sqlx::query_scalar("SELECT body FROM claims WHERE id = ?")
        .bind(claim.0 as i64)
        .fetch_optional(&mut **read)
        .await
        .deed("read a claim")?;
    body.as_deref().map(parse).transpose()
}

/// Every claim after a number, at most `limit`, by number.
pub(crate) async fn rows_after(
    read: &mut Read,
    after: u64,
    limit: u32,
) -> Stored<Vec<ClaimRecord>> {
    let bodies: Vec<String> =
        sqlx::query_scalar("SELECT body FROM claims WHERE id > ? ORDER BY id LIMIT ?")
            .bind(after as i64)
            .bind(limit)
            .fetch_all(&mut **read)
            .await
            .deed("read the list of claims")?;
    bodies.iter().map(|body| parse(body)).collect()
}

/// The claims that are not over.
pub(crate) async fn open(read: &mut Read) -> Stored<Vec<ClaimRecord>> {
    let stages = ReclaimStage::OPEN.map(ReclaimStage::as_str);
    let bodies: Vec<String> = sqlx::query_scalar(
        "SELECT body FROM claims WHERE stage IN (SELECT value FROM json_each(?)) ORDER BY id",
    )
    .bind(json_list(&stages))
    .fetch_all(&mut **read)
    .await
    .deed("read the open claims")?;
    bodies.iter().map(|body| parse(body)).collect()
}

/// The number of the last one; 0 without any.
pub(crate) async fn last(read: &mut Read) -> Stored<u64> {
    let last: Option<i64> = sqlx::query_scalar("SELECT max(id) FROM claims")
        .fetch_one(&mut **read)
        .await
        .deed("read the last claim")?;
    Ok(last.unwrap_or(0) as u64)
}

/// Entries after a number that can say something of a claim, at most `limit`: to make the list anew.
pub(crate) async fn entries_after(read: &mut Read, seq: u64, limit: u32) -> Stored<Vec<Entry>> {
    let rows: Vec<(i64, String)> = sqlx::query_as(
        "SELECT seq, body FROM journal WHERE seq > ? AND kind IN ('claim_requested', 'claim_approved', \
         'claim_declined', 'claim_deferred', 'claim_made', 'claim_withdrawn', 'job_admitted') ORDER BY seq LIMIT ?",
    )
    .bind(seq as i64)
    .bind(limit)
    .fetch_all(&mut **read)
    .await
    .deed("read the claims of the journal")?;
    rows.into_iter().map(super::journal::entry).collect()
}

pub(super) const BRIEFS: &str = "SELECT id, name, team, owner, gpus_milli, submitted FROM jobs \
     WHERE id IN (SELECT value FROM json_each(?))";

/// These jobs in few words.
pub(crate) async fn briefs(
    read: &mut Read,
    jobs: &BTreeSet<JobId>,
) -> Stored<BTreeMap<JobId, Brief>> {
    let ids: Vec<u64> = jobs.iter().map(|job| job.0).collect();
    let rows: Vec<Brief> = sqlx::query_as(BRIEFS)
        .bind(json_list(&ids))
        .fetch_all(&mut **read)
        .await
        .deed("read the names of claims' jobs")?;
    let rows = rows.into_iter();
    Ok(rows.map(|row| (JobId(row.id as u64), row)).collect())
}
