//! Usage, read: lines for drill-down, days for bills.

use super::write::DayKey;
use super::{Deed, Read, Stored};
use crate::words;
use scheduler::{Entitlement, JobId, MilliGpu, Millis, UnitKind, UsageLine, UsagePhase};
use sqlx::{FromRow, QueryBuilder, Row};

/// Usage summed up by job, flavour, entitlement, phase and rate card.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub(crate) struct UsageDay {
    /// Day of the billing zone: 20261130; 0 where days are added up.
    pub(crate) day: i32,
    /// Team.
    pub(crate) team: String,
    /// Job.
    pub(crate) job: i64,
    /// Flavour; empty without GPUs.
    pub(crate) flavour: String,
    /// `own` or `borrowed`.
    pub(crate) entitlement: String,
    /// `run`, ...
    pub(crate) phase: String,
    /// Start of the rate card; -1 without one.
    pub(crate) card: i64,
    /// Thousandths of a GPU x milliseconds.
    pub(crate) held: i64,
}

/// Which usage lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsageQuery {
    /// Of this team.
    pub(crate) team: String,
    /// From then.
    pub(crate) from: Millis,
    /// To then.
    pub(crate) to: Millis,
    /// Only of this job.
    pub(crate) job: Option<JobId>,
    /// After this line.
    pub(crate) after: u64,
    /// At most so many.
    pub(crate) limit: u32,
}

/// A line with its number.
pub(crate) struct Numbered(pub(crate) u64, pub(crate) UsageLine);

impl FromRow<'_, sqlx::sqlite::SqliteRow> for Numbered {
    fn from_row(row: &sqlx::sqlite::SqliteRow) -> Result<Self, sqlx::Error> {
        let number = |column: &str| row.try_get::<i64, _>(column).map(|n| n as u64);
        let text = |column: &str| row.try_get::<String, _>(column);
        let unknown = |word: String| {
            sqlx::Error::Decode(format!("`{word}` is no word of a usage line").into())
        };
        let flavour = text("flavour")?;
        let line = UsageLine {
            job: JobId(number("job")?),
            attempt: row.try_get("attempt")?,
            team: text("team")?.as_str().into(),
            project: text("project")?,
            owner: text("owner")?.as_str().into(),
            flavour: (!flavour.is_empty()).then(|| flavour.as_str().into()),
            entitlement: entitlement(&text("entitlement")?).map_err(unknown)?,
            unit: unit(&text("unit")?).map_err(unknown)?,
            phase: phase(&text("phase")?).map_err(unknown)?,
            from: Millis(number("from_ms")?),
            to: Millis(number("to_ms")?),
            gpus: MilliGpu(number("gpus_milli")?),
            cpu_milli: number("cpu_milli")?,
            nodes: row.try_get("nodes")?,
        };
        Ok(Self(number("id")?, line))
    }
}

fn entitlement(word: &str) -> Result<Entitlement, String> {
    let all = [Entitlement::Own, Entitlement::Borrowed];
    all.into_iter()
        .find(|one| words::entitlement(*one) == word)
        .ok_or_else(|| word.to_owned())
}

fn unit(word: &str) -> Result<UnitKind, String> {
    let all = [UnitKind::Card, UnitKind::Slice, UnitKind::Share];
    all.into_iter()
        .find(|one| words::unit(*one) == word)
        .ok_or_else(|| word.to_owned())
}

fn phase(word: &str) -> Result<UsagePhase, String> {
    let all = [
        UsagePhase::Run,
        UsagePhase::Save,
        UsagePhase::Recover,
        UsagePhase::FailedLaunch,
    ];
    all.into_iter()
        .find(|one| words::phase(*one) == word)
        .ok_or_else(|| word.to_owned())
}

/// Lines of a team, in the order in which they were closed.
pub(crate) async fn lines(read: &mut Read, which: &UsageQuery) -> Stored<Vec<Numbered>> {
    let mut query = QueryBuilder::new("SELECT * FROM usage_lines WHERE team = ");
    query
        .push_bind(which.team.clone())
        .push(" AND id > ")
        .push_bind(which.after as i64);
    if let Some(job) = which.job {
        // The plus signs leave the narrower index to be chosen.
        query = QueryBuilder::new("SELECT * FROM usage_lines WHERE +team = ");
        query
            .push_bind(which.team.clone())
            .push(" AND id > ")
            .push_bind(which.after as i64);
        query.push(" AND job = ").push_bind(job.0 as i64);
    }
    query
        .push(" AND from_ms >= ")
        .push_bind(which.from.0 as i64);
    query.push(" AND from_ms < ").push_bind(which.to.0 as i64);
    query.push(" ORDER BY id LIMIT ").push_bind(which.limit);
    query
        .build_query_as()
        .fetch_all(&mut **read)
        .await
        .deed("read usage lines")
}

/// All lines after a number, at most `limit`.
pub(crate) async fn lines_after(read: &mut Read, after: u64, limit: u32) -> Stored<Vec<Numbered>> {
    sqlx::query_as("SELECT * FROM usage_lines WHERE id > ? ORDER BY id LIMIT ?")
        .bind(after as i64)
        .bind(limit)
        .fetch_all(&mut **read)
        .await
        .deed("read usage lines")
}

/// Usage of one team between two days, inclusive: one a job, day, flavour, entitlement, phase and card.
pub(crate) async fn team_days(
    read: &mut Read,
    team: &str,
    from: i32,
    to: i32,
) -> Stored<Vec<UsageDay>> {
    sqlx::query_as(
        "SELECT * FROM usage_days WHERE day BETWEEN ? AND ? AND team = ? \
         ORDER BY job, flavour, entitlement, phase, card, day",
    )
    .bind(from)
    .bind(to)
    .bind(team)
    .fetch_all(&mut **read)
    .await
    .deed("read a team's usage")
}

/// Usage of one job.
pub(crate) async fn job_days(read: &mut Read, job: JobId) -> Stored<Vec<UsageDay>> {
    sqlx::query_as("SELECT * FROM usage_days WHERE job = ?")
        .bind(job.0 as i64)
        .fetch_all(&mut **read)
        .await
        .deed("read a job's usage")
}

/// Usage of all teams between two days, inclusive.
pub(crate) async fn all_days(read: &mut Read, from: i32, to: i32) -> Stored<Vec<UsageDay>> {
    sqlx::query_as("SELECT * FROM usage_days WHERE day BETWEEN ? AND ?")
        .bind(from)
        .bind(to)
        .fetch_all(&mut **read)
        .await
        .deed("read the teams' usage")
}

/// Months that have usage: 202611, newest first.
pub(crate) async fn months(read: &mut Read, teams: Option<&[String]>) -> Stored<Vec<i32>> {
    // By skipping from month to month in the index; a DISTINCT would read every row.
    let mut months = Vec::new();
    let mut before = i32::MAX;
    loop {
        let mut query = QueryBuilder::new("SELECT max(day) FROM usage_days WHERE day < ");
        query.push_bind(before);
        if let Some(teams) = teams {
            query.push(" AND team IN (");
            let mut list = query.separated(", ");
            for team in teams {
                list.push_bind(team.clone());
            }
            query.push(")");
        }
        let last: Option<i32> = query
            .build_query_scalar()
            .fetch_one(&mut **read)
            .await
            .deed("read the months with usage")?;
        let Some(last) = last else { return Ok(months) };
        months.push(last / 100);
        before = last / 100 * 100;
    }
}

/// Every row of the days' sums.
pub(crate) async fn every_day(read: &mut Read) -> Stored<Vec<UsageDay>> {
    sqlx::query_as("SELECT * FROM usage_days")
        .fetch_all(&mut **read)
        .await
        .deed("read the days' usage")
}

impl UsageDay {
    /// What it is summed up by.
    pub(crate) fn key(&self) -> Option<DayKey> {
        Some(DayKey {
            day: self.day,
            team: self.team.clone(),
            job: self.job as u64,
            flavour: self.flavour.clone(),
            entitlement: words::entitlement(entitlement(&self.entitlement).ok()?),
            phase: words::phase(phase(&self.phase).ok()?),
            card: self.card,
        })
    }
}
