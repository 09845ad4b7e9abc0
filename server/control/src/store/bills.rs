//! Usage, read: lines for drill-down, days for bills.

use super::write::DayKey;
use super::{Deed, Read, Stored, json_list};
use crate::words;
use scheduler::{Entitlement, JobId, MilliGpu, Millis, UnitKind, UsageLine, UsagePhase};
use sqlx::{FromRow, Row};
use std::collections::{BTreeMap, BTreeSet};

/// Usage summed up by job, flavour, entitlement, phase and rate card.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub(crate) struct UsageDay {
    /// Day of the billing zone: 20261130.
    pub(crate) day: i32,
    /// Team.
    pub(crate) team: String,
    /// Job; 0 where jobs are added up.
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

/// Numbers first, from the index alone; then the rows of one page.
pub(super) const LINES: &str = "SELECT * FROM usage_lines WHERE id IN (SELECT id FROM usage_lines \
     WHERE team = ? AND from_ms >= ? AND from_ms < ? AND id > ? ORDER BY id LIMIT ?) ORDER BY id";
/// The plus sign leaves the narrower index to be chosen.
pub(super) const LINES_OF_JOB: &str = "SELECT * FROM usage_lines \
     WHERE +team = ? AND from_ms >= ? AND from_ms < ? AND id > ? AND job = ? ORDER BY id LIMIT ?";

/// Lines of a team, in the order in which they were closed.
pub(crate) async fn lines(read: &mut Read, which: &UsageQuery) -> Stored<Vec<Numbered>> {
    let of_team = |sql| {
        sqlx::query_as(sql)
            .bind(&which.team)
            .bind(which.from.0 as i64)
            .bind(which.to.0 as i64)
            .bind(which.after as i64)
    };
    let query = match which.job {
        None => of_team(LINES),
        Some(job) => of_team(LINES_OF_JOB).bind(job.0 as i64),
    };
    query
        .bind(which.limit)
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

pub(super) const TEAM_DAYS: &str =
    "SELECT * FROM usage_days WHERE team = ? AND day BETWEEN ? AND ?";
pub(super) const JOB_DAYS: &str = "SELECT * FROM usage_days WHERE job = ?";
pub(super) const ALL_DAYS: &str = "SELECT team, day, 0 AS job, flavour, entitlement, phase, card, held FROM usage_team_days \
     WHERE team IN (SELECT team FROM usage_counts WHERE month = ?1) AND day BETWEEN ?1 * 100 AND ?1 * 100 + 99";
pub(super) const DAYS_OF_TEAMS: &str = "SELECT team, day, 0 AS job, flavour, entitlement, phase, card, held FROM usage_team_days \
     WHERE team IN (SELECT value FROM json_each(?2)) AND day BETWEEN ?1 * 100 AND ?1 * 100 + 99";
pub(super) const COUNTS: &str = "SELECT team, jobs FROM usage_counts WHERE month = ?";
pub(super) const WITH_USAGE: &str = "SELECT DISTINCT job FROM usage_days \
     WHERE job IN (SELECT value FROM json_each(?2)) AND day BETWEEN ?1 * 100 AND ?1 * 100 + 99";
pub(super) const MONTHS: &str = "SELECT DISTINCT month FROM usage_counts ORDER BY month DESC";
pub(super) const MONTHS_OF_TEAMS: &str = "SELECT DISTINCT month FROM usage_counts \
     WHERE team IN (SELECT value FROM json_each(?)) ORDER BY month DESC";

/// Usage of one team in a month (202611): one a job, day, flavour, entitlement, phase and card.
pub(crate) async fn team_days(read: &mut Read, team: &str, month: i32) -> Stored<Vec<UsageDay>> {
    sqlx::query_as(TEAM_DAYS)
        .bind(team)
        .bind(month * 100)
        .bind(month * 100 + 99)
        .fetch_all(&mut **read)
        .await
        .deed("read a team's usage")
}

/// Usage of one job.
pub(crate) async fn job_days(read: &mut Read, job: JobId) -> Stored<Vec<UsageDay>> {
    sqlx::query_as(JOB_DAYS)
        .bind(job.0 as i64)
        .fetch_all(&mut **read)
        .await
        .deed("read a job's usage")
}

/// Usage in a month of these teams (`None` = all), its jobs added up: their number is 0.
pub(crate) async fn all_days(
    read: &mut Read,
    teams: Option<&[String]>,
    month: i32,
) -> Stored<Vec<UsageDay>> {
    let query = match teams {
        None => sqlx::query_as(ALL_DAYS).bind(month),
        Some(teams) => sqlx::query_as(DAYS_OF_TEAMS)
            .bind(month)
            .bind(json_list(teams)),
    };
    query
        .fetch_all(&mut **read)
        .await
        .deed("read the teams' usage")
}

/// How many jobs of each team have usage in a month, without what is still open.
pub(crate) async fn job_counts(read: &mut Read, month: i32) -> Stored<BTreeMap<String, u64>> {
    let rows: Vec<(String, i64)> = sqlx::query_as(COUNTS)
        .bind(month)
        .fetch_all(&mut **read)
        .await
        .deed("count the jobs of a month")?;
    Ok(rows.into_iter().map(|(team, n)| (team, n as u64)).collect())
}

/// Which of these jobs have usage in a month that is not open any more.
pub(crate) async fn with_usage(read: &mut Read, jobs: &[u64], month: i32) -> Stored<BTreeSet<u64>> {
    let rows: Vec<i64> = sqlx::query_scalar(WITH_USAGE)
        .bind(month)
        .bind(json_list(jobs))
        .fetch_all(&mut **read)
        .await
        .deed("read which jobs have usage")?;
    Ok(rows.into_iter().map(|job| job as u64).collect())
}

/// Months in which these teams (`None` = all) have usage: 202611, newest first.
pub(crate) async fn months(read: &mut Read, teams: Option<&[String]>) -> Stored<Vec<i32>> {
    let query = match teams {
        None => sqlx::query_scalar(MONTHS),
        Some(teams) => sqlx::query_scalar(MONTHS_OF_TEAMS).bind(json_list(teams)),
    };
    query
        .fetch_all(&mut **read)
        .await
        .deed("read the months with usage")
}

/// A table of sums that is not what the rows say which it sums up; `None` when all are.
pub(crate) async fn wrong_sums(read: &mut Read) -> Stored<Option<&'static str>> {
    let sums = [
        (
            "usage_team_days",
            "SELECT team, day, flavour, entitlement, phase, card, held FROM usage_team_days",
            "SELECT team, day, flavour, entitlement, phase, card, sum(held) FROM usage_days \
             GROUP BY team, day, flavour, entitlement, phase, card",
        ),
        (
            "usage_months",
            "SELECT team, month, job FROM usage_months",
            "SELECT DISTINCT team, day / 100, job FROM usage_days",
        ),
        (
            "usage_counts",
            "SELECT team, month, jobs FROM usage_counts",
            "SELECT team, month, count(*) FROM usage_months GROUP BY team, month",
        ),
        (
            "job_counts",
            "SELECT team, state, jobs FROM job_counts WHERE jobs <> 0",
            "SELECT team, state, count(*) FROM jobs GROUP BY team, state",
        ),
    ];
    for (table, kept, made) in sums {
        let sql = format!("SELECT EXISTS ({kept} EXCEPT {made}) OR EXISTS ({made} EXCEPT {kept})");
        let differ: bool = sqlx::query_scalar(&sql)
            .fetch_one(&mut **read)
            .await
            .deed("compare sums")?;
        if differ {
            return Ok(Some(table));
        }
    }
    Ok(None)
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
