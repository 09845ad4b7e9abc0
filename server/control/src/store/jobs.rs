//! The list of jobs: filter, counts and pages.

use super::rows::Statement;
use super::{Deed, Read, Stored, json_list};
use contract::{JobFilter, JobState, SortKey};
use scheduler::JobId;
use sqlx::{FromRow, QueryBuilder, Row, Sqlite};
use std::collections::BTreeMap;

/// A job as the store keeps it. Amounts in thousandths of a GPU, times and spans in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobRecord {
    /// Its number.
    pub(crate) id: u64,
    /// Its name.
    pub(crate) name: String,
    /// Its team.
    pub(crate) team: String,
    /// Its project.
    pub(crate) project: String,
    /// Its owner.
    pub(crate) owner: String,
    /// Where it is in its life.
    pub(crate) state: JobState,
    /// A stop is under way.
    pub(crate) stopping: bool,
    /// Its priority class.
    pub(crate) priority: String,
    /// The flavour taken, or those asked for, with commas between.
    pub(crate) flavours: String,
    /// GPUs of the gang.
    pub(crate) gpus_milli: u64,
    /// Pods of the gang.
    pub(crate) pods: u32,
    /// Attempts so far.
    pub(crate) attempt: u32,
    /// Running time over all attempts that are over.
    pub(crate) ran_ms: u64,
    /// First submitted.
    pub(crate) submitted: u64,
    /// All pods up, in the current or last attempt.
    pub(crate) started: Option<u64>,
    /// Ended.
    pub(crate) ended: Option<u64>,
    /// Latest end by its time limit, while it runs.
    pub(crate) ends_by: Option<u64>,
    /// Inside nominal, when this was written; a live job's figure is the state's.
    pub(crate) own_milli: Option<u64>,
    /// Borrowed, when this was written.
    pub(crate) borrowed_milli: Option<u64>,
    /// Where it lies or lay, in words.
    pub(crate) place: Option<String>,
    /// Why it ended, when not by itself.
    pub(crate) end_cause: Option<String>,
    /// Spec and last placement as JSON, when they are to be written.
    pub(crate) details: Option<(String, Option<String>)>,
}

impl JobRecord {
    /// Columns in which two rows differ; details apart.
    pub(crate) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let same = [
            ("id", self.id == other.id),
            ("name", self.name == other.name),
            ("team", self.team == other.team),
            ("project", self.project == other.project),
            ("owner", self.owner == other.owner),
            ("state", self.state == other.state),
            ("stopping", self.stopping == other.stopping),
            ("priority", self.priority == other.priority),
            ("flavours", self.flavours == other.flavours),
            ("gpus_milli", self.gpus_milli == other.gpus_milli),
            ("pods", self.pods == other.pods),
            ("attempt", self.attempt == other.attempt),
            ("ran_ms", self.ran_ms == other.ran_ms),
            ("submitted", self.submitted == other.submitted),
            ("started", self.started == other.started),
            ("ended", self.ended == other.ended),
            ("ends_by", self.ends_by == other.ends_by),
            ("own_milli", self.own_milli == other.own_milli),
            (
                "borrowed_milli",
                self.borrowed_milli == other.borrowed_milli,
            ),
            ("place", self.place == other.place),
            ("end_cause", self.end_cause == other.end_cause),
        ];
        let differing = same.into_iter().filter(|(_, same)| !same);
        differing.map(|(column, _)| column).collect()
    }

    /// Binds the columns of the `jobs` table in their order.
    pub(super) fn bind<'q>(&'q self, row: Statement<'q>) -> Statement<'q> {
        let number = |n: Option<u64>| n.map(|n| n as i64);
        row.bind(self.id as i64)
            .bind(&self.name)
            .bind(&self.team)
            .bind(&self.project)
            .bind(&self.owner)
            .bind(self.state.as_str())
            .bind(self.stopping)
            .bind(&self.priority)
            .bind(&self.flavours)
            .bind(self.gpus_milli as i64)
            .bind(self.pods)
            .bind(self.attempt)
            .bind(self.ran_ms as i64)
            .bind(self.submitted as i64)
            .bind(number(self.started))
            .bind(number(self.ended))
            .bind(number(self.ends_by))
            .bind(number(self.own_milli))
            .bind(number(self.borrowed_milli))
            .bind(&self.place)
            .bind(&self.end_cause)
    }
}

impl FromRow<'_, sqlx::sqlite::SqliteRow> for JobRecord {
    fn from_row(row: &sqlx::sqlite::SqliteRow) -> Result<Self, sqlx::Error> {
        let number = |column: &str| row.try_get::<i64, _>(column).map(|n| n as u64);
        let maybe = |column: &str| {
            row.try_get::<Option<i64>, _>(column)
                .map(|n| n.map(|n| n as u64))
        };
        let state: String = row.try_get("state")?;
        let state = state
            .parse()
            .map_err(|problem: String| sqlx::Error::Decode(problem.into()))?;
        Ok(Self {
            id: number("id")?,
            name: row.try_get("name")?,
            team: row.try_get("team")?,
            project: row.try_get("project")?,
            owner: row.try_get("owner")?,
            state,
            stopping: row.try_get("stopping")?,
            priority: row.try_get("priority")?,
            flavours: row.try_get("flavours")?,
            gpus_milli: number("gpus_milli")?,
            pods: row.try_get("pods")?,
            attempt: row.try_get("attempt")?,
            ran_ms: number("ran_ms")?,
            submitted: number("submitted")?,
            started: maybe("started")?,
            ended: maybe("ended")?,
            ends_by: maybe("ends_by")?,
            own_milli: maybe("own_milli")?,
            borrowed_milli: maybe("borrowed_milli")?,
            place: row.try_get("place")?,
            end_cause: row.try_get("end_cause")?,
            details: None,
        })
    }
}

/// Where a page ended: the order it was in, and its last job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobCursor {
    /// The order.
    pub(crate) sort: SortKey,
    /// The last job.
    pub(crate) last: u64,
}

impl JobCursor {
    /// The cursor as callers keep it.
    pub(crate) fn text(self) -> String {
        let letter = match self.sort {
            SortKey::Newest => 'n',
            SortKey::Oldest => 'o',
        };
        format!("{letter}{:x}", self.last)
    }
    /// The cursor behind that text; `None` when it is not one of ours.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let sort = match text.as_bytes().first()? {
            b'n' => SortKey::Newest,
            b'o' => SortKey::Oldest,
            _ => return None,
        };
        let digits = &text[1..];
        let last = u64::from_str_radix(digits, 16)
            .ok()
            .filter(|last| format!("{last:x}") == digits)?;
        i64::try_from(last).ok()?;
        Some(Self { sort, last })
    }
}

/// One page of the list, with the counts of all that the filter matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListPage {
    /// The rows.
    pub(crate) jobs: Vec<JobRecord>,
    /// How many there are in each state.
    pub(crate) counts: BTreeMap<JobState, u64>,
    /// True when more follow.
    pub(crate) more: bool,
}

/// Jobs that match, of the teams that may be seen (`None` = all).
pub(crate) async fn page(
    read: &mut Read,
    filter: &JobFilter,
    visible: Option<&[String]>,
    after: Option<JobCursor>,
    limit: u32,
) -> Stored<ListPage> {
    let counted: Vec<(String, i64)> = count_query(filter, visible)
        .build_query_as()
        .fetch_all(&mut **read)
        .await
        .deed("count jobs")?;
    let counts = counted
        .into_iter()
        .filter_map(|(state, n)| Some((state.parse().ok()?, n as u64)))
        .collect();
    let mut jobs: Vec<JobRecord> = page_query(filter, visible, after, limit)
        .build_query_as()
        .fetch_all(&mut **read)
        .await
        .deed("list jobs")?;
    let more = jobs.len() > limit as usize;
    jobs.truncate(limit as usize);
    Ok(ListPage { jobs, counts, more })
}

/// How many match in each state: from the kept counts, or, where these do not tell, from an index alone.
pub(super) fn count_query(
    filter: &JobFilter,
    visible: Option<&[String]>,
) -> QueryBuilder<'static, Sqlite> {
    let told = filter.owner.is_none() && filter.search.as_ref().is_none_or(String::is_empty);
    let mut query = QueryBuilder::new(match told {
        true => "SELECT state, sum(jobs) FROM job_counts WHERE jobs <> 0",
        false => "SELECT state, count(*) FROM jobs WHERE 1 = 1",
    });
    push_filter(&mut query, filter, visible);
    query.push(" GROUP BY state");
    query
}

/// Numbers first, from an index alone; then the rows of one page and one more.
pub(super) fn page_query(
    filter: &JobFilter,
    visible: Option<&[String]>,
    after: Option<JobCursor>,
    limit: u32,
) -> QueryBuilder<'static, Sqlite> {
    let after = after.map(|after| after.last as i64);
    let (compare, first, order) = match filter.sort {
        SortKey::Newest => ("id < ", i64::MAX, " ORDER BY id DESC"),
        SortKey::Oldest => ("id > ", 0, " ORDER BY id"),
    };
    let mut query = QueryBuilder::new("SELECT * FROM jobs WHERE id IN (SELECT id FROM jobs WHERE ");
    query.push(compare).push_bind(after.unwrap_or(first));
    push_filter(&mut query, filter, visible);
    query
        .push(order)
        .push(" LIMIT ")
        .push_bind(i64::from(limit) + 1)
        .push(")")
        .push(order);
    query
}

fn push_filter(
    query: &mut QueryBuilder<'_, Sqlite>,
    filter: &JobFilter,
    visible: Option<&[String]>,
) {
    if let Some(visible) = visible {
        push_among(query, "team", visible.iter().cloned());
    }
    if !filter.teams.is_empty() {
        push_among(query, "team", filter.teams.iter().cloned());
    }
    if !filter.states.is_empty() {
        push_among(
            query,
            "state",
            filter.states.iter().map(|state| state.as_str().to_owned()),
        );
    }
    if let Some(owner) = &filter.owner {
        query.push(" AND owner = ").push_bind(owner.clone());
    }
    if let Some(search) = filter.search.as_ref().filter(|search| !search.is_empty()) {
        query
            .push(" AND instr(name, ")
            .push_bind(search.to_lowercase())
            .push(") > 0");
    }
}

fn push_among(
    query: &mut QueryBuilder<'_, Sqlite>,
    column: &str,
    values: impl Iterator<Item = String>,
) {
    // As one value, however many there are.
    let list: Vec<String> = values.collect();
    query.push(" AND ").push(column);
    query.push(" IN (SELECT value FROM json_each(");
    query.push_bind(json_list(&list)).push("))");
}

/// One job, with its spec and last placement.
pub(crate) async fn one(read: &mut Read, job: JobId) -> Stored<Option<JobRecord>> {
    let row: Option<JobRecord> = sqlx::query_as("SELECT * FROM jobs WHERE id = ?")
        .bind(job.0 as i64)
        .fetch_optional(&mut **read)
        .await
        .deed("read a job")?;
    let Some(mut record) = row else {
        return Ok(None);
    };
    record.details = sqlx::query_as("SELECT spec, placement FROM job_details WHERE id = ?")
        .bind(job.0 as i64)
        .fetch_optional(&mut **read)
        .await
        .deed("read a job's details")?;
    Ok(Some(record))
}

/// Team and owner of a job.
pub(crate) async fn team_and_owner(
    read: &mut Read,
    job: JobId,
) -> Stored<Option<(String, String)>> {
    sqlx::query_as("SELECT team, owner FROM jobs WHERE id = ?")
        .bind(job.0 as i64)
        .fetch_optional(&mut **read)
        .await
        .deed("read a job's team")
}

pub(super) const NAMES: &str = "SELECT id, name, project, owner FROM jobs WHERE id IN \
     (SELECT job FROM usage_months WHERE team = ? AND month = ? UNION SELECT value FROM json_each(?))";

/// Name, project and owner, by number, of a team's jobs with usage in a month (202611), and of some others.
pub(crate) async fn names(
    read: &mut Read,
    team: &str,
    month: i32,
    others: &[u64],
) -> Stored<BTreeMap<u64, (String, String, String)>> {
    let rows: Vec<(i64, String, String, String)> = sqlx::query_as(NAMES)
        .bind(team)
        .bind(month)
        .bind(json_list(others))
        .fetch_all(&mut **read)
        .await
        .deed("read the names of a team's jobs")?;
    Ok(rows
        .into_iter()
        .map(|(id, name, project, owner)| (id as u64, (name, project, owner)))
        .collect())
}

/// Every job after a number with what is kept of its details, at most `limit`, by number.
pub(crate) async fn rows_after(read: &mut Read, after: u64, limit: u32) -> Stored<Vec<JobRecord>> {
    let rows = sqlx::query(
        "SELECT jobs.*, spec, placement FROM jobs LEFT JOIN job_details USING (id) WHERE jobs.id > ? \
         ORDER BY jobs.id LIMIT ?",
    )
    .bind(after as i64)
    .bind(limit)
    .fetch_all(&mut **read)
    .await
    .deed("read the list of jobs")?;
    let whole = |row: &sqlx::sqlite::SqliteRow| -> Result<JobRecord, sqlx::Error> {
        let spec: Option<String> = row.try_get("spec")?;
        let placement: Option<String> = row.try_get("placement")?;
        Ok(JobRecord {
            details: spec.map(|spec| (spec, placement)),
            ..JobRecord::from_row(row)?
        })
    };
    rows.iter()
        .map(whole)
        .collect::<Result<_, _>>()
        .deed("read the list of jobs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_what_it_writes_and_nothing_else() {
        for sort in [SortKey::Newest, SortKey::Oldest] {
            let cursor = JobCursor { sort, last: 4_711 };
            assert_eq!(JobCursor::parse(&cursor.text()), Some(cursor));
        }
        for text in [
            "",
            "x1",
            "n",
            "n-1",
            "n+1",
            "nG",
            "n01",
            "nffffffffffffffff",
            "é1",
            "1267",
        ] {
            assert_eq!(JobCursor::parse(text), None, "{text}");
        }
    }
}
