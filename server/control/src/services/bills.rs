//! Bills and usage. Page, CSV, REST and CLI come from one query object ([`crate::bill`]).

use super::{Answer, invalid, no_team};
use crate::Everyone;
use crate::bill::{JobName, Prices, Query, Usage, open_usage};
use crate::period::{Month, instant};
use crate::store::{Read, bills, jobs};
use crate::words;
use contract::{BillView, Gpus, Role, UsageLineView};
use scheduler::{JobId, Millis, TeamId, UsageLine};
use std::collections::BTreeMap;

/// Lines of one answer at most.
const LINES_MAX: u32 = 1_000;

fn parse_month(text: Option<&str>, now: Millis) -> Answer<Month> {
    match text.filter(|text| !text.is_empty()) {
        None => Ok(Month::of(now)),
        Some(text) => Month::parse(text)
            .ok_or_else(|| invalid("month", format!("`{text}` is no month; write 2026-11"))),
    }
}

impl Everyone {
    /// Teams whose bill the actor may read; `None` = all.
    fn billed_teams(&self) -> Option<Vec<String>> {
        super::everyone::visible_teams(&self.actor)
    }

    /// The month's bill over every team that the actor may read (own teams; all for managers and admins). `None` = this
    /// month. `YYYY-MM` otherwise.
    pub async fn bills(&self, month: Option<&str>) -> Answer<BillView> {
        let readable = self.billed_teams();
        let reads = |team: &str| {
            readable
                .as_ref()
                .is_none_or(|teams| teams.iter().any(|one| one == team))
        };
        let (mut read, seen) = self.look(month, reads).await?;
        let month = seen.month.number();
        let closed = bills::all_days(&mut read, readable.as_deref(), month).await?;
        let jobs = job_counts(&mut read, &seen, readable.as_deref()).await?;
        let query = query(&mut read, seen, closed, readable.as_deref()).await?;
        Ok(query.all_teams(&jobs))
    }

    /// One team's bill with lines; not the actor's to read = not found.
    pub async fn bill(&self, team: &str, month: Option<&str>) -> Answer<BillView> {
        self.check_billed(team)?;
        let (mut read, seen) = self.look(month, |one| one == team).await?;
        let month = seen.month.number();
        let closed = bills::team_days(&mut read, team, month).await?;
        let open: Vec<u64> = seen.open.iter().map(|usage| usage.key.job).collect();
        let names = jobs::names(&mut read, team, month, &open).await?;
        let names = names.into_iter().map(|(id, (name, project, owner))| {
            (
                id,
                JobName {
                    name,
                    project,
                    owner,
                },
            )
        });
        let query = query(&mut read, seen, closed, Some(&[team.to_owned()])).await?;
        Ok(query.one_team(team, &names.collect()))
    }

    fn check_billed(&self, team: &str) -> Answer<()> {
        let there = self
            .control
            .inner
            .published
            .read()
            .state
            .teams
            .contains_key(&TeamId::from(team));
        let reads = self.actor.role_in(team).is_some() || self.actor.has(Role::Manager);
        if there && reads {
            Ok(())
        } else {
            Err(no_team(team))
        }
    }

    async fn look(
        &self,
        month: Option<&str>,
        reads: impl Fn(&str) -> bool,
    ) -> Answer<(Read, Seen)> {
        let month_of = |now| parse_month(month, now);
        let (read, seen) = self
            .control
            .moment(|live, now| {
                let month = month_of(now)?;
                let (from, to) = month.bounds();
                let open = live.meter.open_lines(now);
                let open = open
                    .iter()
                    .filter(|line| reads(line.team.as_str()) && (from..to).contains(&line.from));
                let open = open.map(|line| open_usage(line, &live.state)).collect();
                Answer::Ok(Seen {
                    month,
                    now,
                    open,
                    prices: Prices::of(&live.state.rate_cards),
                })
            })
            .await?;
        Ok((read, seen?))
    }

    /// Usage lines of a team and month, in the order in which they were closed; `job` narrows it. For drill-down and the
    /// usage API. At most `limit` (1 to 1,000), after the line with number `after`.
    pub async fn usage(
        &self,
        team: &str,
        month: Option<&str>,
        job: Option<u64>,
        limit: u32,
        after: Option<u64>,
    ) -> Answer<Vec<UsageLineView>> {
        self.check_billed(team)?;
        if !(1..=LINES_MAX).contains(&limit) {
            return Err(invalid("limit", format!("1 to {LINES_MAX}")));
        }
        let (from, to) = parse_month(month, self.control.inner.clock.now())?.bounds();
        let signed = |n: u64| n.min(i64::MAX as u64);
        let which = bills::UsageQuery {
            team: team.to_owned(),
            from,
            to,
            job: job.map(signed).map(JobId),
            after: after.map_or(0, signed),
            limit,
        };
        let mut read = self.control.inner.store.read().await?;
        let lines = bills::lines(&mut read, &which).await?;
        Ok(lines
            .into_iter()
            .map(|bills::Numbered(number, line)| line_view(number, &line))
            .collect())
    }
}

/// What a bill takes from the published state.
struct Seen {
    month: Month,
    now: Millis,
    open: Vec<Usage>,
    prices: Prices,
}

/// Jobs with usage in the month by team: those that are counted, and those whose first line is still open.
async fn job_counts(
    read: &mut Read,
    seen: &Seen,
    teams: Option<&[String]>,
) -> Answer<BTreeMap<String, u64>> {
    let month = seen.month.number();
    let mut counts = bills::job_counts(read, month).await?;
    counts.retain(|team, _| teams.is_none_or(|teams| teams.contains(team)));
    let open: BTreeMap<u64, &str> = seen
        .open
        .iter()
        .map(|usage| (usage.key.job, usage.key.team.as_str()))
        .collect();
    let ids: Vec<u64> = open.keys().copied().collect();
    let counted = bills::with_usage(read, &ids, month).await?;
    for (job, team) in open {
        if !counted.contains(&job) {
            *counts.entry(team.to_owned()).or_default() += 1;
        }
    }
    Ok(counts)
}

async fn query(
    read: &mut Read,
    seen: Seen,
    closed: Vec<bills::UsageDay>,
    teams: Option<&[String]>,
) -> Answer<Query> {
    let this_month = Month::of(seen.now);
    let mut months: Vec<String> = bills::months(read, teams)
        .await?
        .into_iter()
        .map(|month| Month::from_number(month).text())
        .collect();
    if !months.contains(&this_month.text()) {
        months.insert(0, this_month.text());
    }
    let closed = closed.into_iter().filter_map(|day| {
        Some(Usage {
            key: day.key()?,
            held: day.held.into(),
        })
    });
    let usage = closed.chain(seen.open).collect();
    Ok(Query {
        month: seen.month,
        now: seen.now,
        prices: seen.prices,
        months,
        usage,
    })
}

fn line_view(number: u64, line: &UsageLine) -> UsageLineView {
    UsageLineView {
        number,
        job: line.job.0,
        attempt: line.attempt,
        team: line.team.to_string(),
        project: line.project.clone(),
        owner: line.owner.to_string(),
        flavour: words::flavour_of(line).to_owned(),
        entitlement: words::entitlement(line.entitlement).to_owned(),
        unit: words::unit(line.unit).to_owned(),
        phase: words::phase(line.phase).to_owned(),
        from: instant(line.from),
        to: instant(line.to),
        gpus: Gpus(line.gpus),
        milli_gpu_ms: line.held().0.to_string(),
        nodes: line.nodes,
    }
}
