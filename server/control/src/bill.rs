//! The bill: one query object that every door shows.
//!
//! Exact sums of usage first; rounded once, at the end, from the top down: a team's total is its exact cost rounded, its
//! own and borrowed parts add up to that total, and the lines of each part add up to the part. The remainder goes to the
//! lines with the largest one. All teams' total is the sum of the teams' totals. GPU-hours are rounded the same way.

use crate::period::{self, Month};
use crate::store::DayKey;
use crate::words;
use contract::{
    BILLING_ZONE, BillLine, BillTotals, BillView, DayUsage, JobBill, JobMonth, ProjectBill,
    TeamBill, money,
};
use scheduler::{
    COST_PER_CENT, Cents, Entitlement, FlavourId, MilliGpuMs, Millis, RateCard, State, UsageLine,
    UsagePhase, spread,
};
use std::collections::{BTreeMap, BTreeSet};

/// Units of held time in a ten-thousandth of a GPU-hour.
const HELD_PER_E4: i128 = MilliGpuMs::GPU_HOUR.0 as i128 / 10_000;

/// Exact sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    own_held: i128,
    borrowed_held: i128,
    failed_held: i128,
    own_cost: i128,
    borrowed_cost: i128,
}

/// Rounded sums: hours in ten-thousandths, money in hundredths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rounded {
    own_hours: i64,
    borrowed_hours: i64,
    failed_hours: i64,
    own_cents: i64,
    borrowed_cents: i64,
}

impl std::ops::AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.own_held += other.own_held;
        self.borrowed_held += other.borrowed_held;
        self.failed_held += other.failed_held;
        self.own_cost += other.own_cost;
        self.borrowed_cost += other.borrowed_cost;
    }
}
impl std::ops::AddAssign for Rounded {
    fn add_assign(&mut self, other: Self) {
        self.own_hours += other.own_hours;
        self.borrowed_hours += other.borrowed_hours;
        self.failed_hours += other.failed_hours;
        self.own_cents += other.own_cents;
        self.borrowed_cents += other.borrowed_cents;
    }
}

/// An amount of usage with what it is summed up by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// What it is summed up by.
    pub(crate) key: DayKey,
    /// Thousandths of a GPU x milliseconds.
    pub(crate) held: i128,
}

/// A line that is still open, as usage.
pub(crate) fn open_usage(line: &UsageLine, state: &State) -> Usage {
    Usage {
        key: crate::engine::day_key(line, state),
        held: line.held().0 as i128,
    }
}

/// Prices, by the start of their card.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prices {
    cards: BTreeMap<i64, RateCard>,
}

impl Prices {
    /// Of the cards that were published; a later one of the same start replaces the earlier.
    pub(crate) fn of(cards: &[RateCard]) -> Self {
        Self {
            cards: cards
                .iter()
                .map(|card| (card.from.0 as i64, card.clone()))
                .collect(),
        }
    }
    /// The card in force.
    pub(crate) fn at(&self, at: Millis) -> Option<&RateCard> {
        self.cards
            .range(..=at.0 as i64)
            .next_back()
            .map(|(_, card)| card)
    }
    fn micros(&self, key: &DayKey) -> u64 {
        let borrowed = key.entitlement == words::entitlement(Entitlement::Borrowed);
        let Some(card) = self.cards.get(&key.card) else {
            return 0;
        };
        let prices = if borrowed {
            &card.borrowed_micros
        } else {
            &card.own_micros
        };
        prices
            .get(&FlavourId::from(key.flavour.as_str()))
            .copied()
            .unwrap_or(0)
    }
    fn sums(&self, usage: &Usage) -> Sums {
        let mut sums = Sums::default();
        let cost = usage.held * i128::from(self.micros(&usage.key));
        if usage.key.phase == words::phase(UsagePhase::FailedLaunch) {
            sums.failed_held = usage.held;
        } else if usage.key.entitlement == words::entitlement(Entitlement::Borrowed) {
            (sums.borrowed_held, sums.borrowed_cost) = (usage.held, cost);
        } else {
            (sums.own_held, sums.own_cost) = (usage.held, cost);
        }
        sums
    }
}

/// Rounds half up.
fn rounded(amount: i128, unit: i128) -> i64 {
    (amount + unit / 2).div_euclid(unit) as i64
}

impl Sums {
    /// Rounded by itself: its parts add up to the rounded whole.
    pub(crate) fn round(&self) -> Rounded {
        let held = [self.own_held, self.borrowed_held, self.failed_held];
        let hours = spread(&held, HELD_PER_E4, rounded(held.iter().sum(), HELD_PER_E4));
        let cost = [self.own_cost, self.borrowed_cost];
        let cents = spread(
            &cost,
            COST_PER_CENT,
            rounded(cost.iter().sum(), COST_PER_CENT),
        );
        Rounded {
            own_hours: hours[0],
            borrowed_hours: hours[1],
            failed_hours: hours[2],
            own_cents: cents[0],
            borrowed_cents: cents[1],
        }
    }

    /// Many of them, rounded so that they add up to `whole` in every column.
    fn round_within(all: &[Self], whole: Rounded) -> Vec<Rounded> {
        let column = |of: fn(&Self) -> i128, unit, total| {
            spread(&all.iter().map(of).collect::<Vec<_>>(), unit, total)
        };
        let own_hours = column(|sums| sums.own_held, HELD_PER_E4, whole.own_hours);
        let borrowed_hours = column(|sums| sums.borrowed_held, HELD_PER_E4, whole.borrowed_hours);
        let failed_hours = column(|sums| sums.failed_held, HELD_PER_E4, whole.failed_hours);
        let own_cents = column(|sums| sums.own_cost, COST_PER_CENT, whole.own_cents);
        let borrowed_cents = column(
            |sums| sums.borrowed_cost,
            COST_PER_CENT,
            whole.borrowed_cents,
        );
        (0..all.len())
            .map(|i| Rounded {
                own_hours: own_hours[i],
                borrowed_hours: borrowed_hours[i],
                failed_hours: failed_hours[i],
                own_cents: own_cents[i],
                borrowed_cents: borrowed_cents[i],
            })
            .collect()
    }
}

fn hours_text(e4: i64) -> String {
    format!("{}.{:04}", e4 / 10_000, e4 % 10_000)
}

impl Rounded {
    /// As every door shows it.
    pub(crate) fn totals(&self) -> BillTotals {
        BillTotals {
            own_gpu_hours: hours_text(self.own_hours),
            own_amount: money(Cents(self.own_cents)),
            borrowed_gpu_hours: hours_text(self.borrowed_hours),
            borrowed_amount: money(Cents(self.borrowed_cents)),
            failed_launch_gpu_hours: hours_text(self.failed_hours),
            gpu_hours: hours_text(self.own_hours + self.borrowed_hours + self.failed_hours),
            amount: money(Cents(self.own_cents + self.borrowed_cents)),
        }
    }
}

/// What a bill is made from.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// The month.
    pub(crate) month: Month,
    /// Now.
    pub(crate) now: Millis,
    /// Prices.
    pub(crate) prices: Prices,
    /// Months that have usage, newest first.
    pub(crate) months: Vec<String>,
    /// Usage in the month, open lines among it.
    pub(crate) usage: Vec<Usage>,
}

/// What a bill's lines say about a job besides its sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobName {
    /// Its name.
    pub(crate) name: String,
    /// Its project.
    pub(crate) project: String,
    /// Its owner.
    pub(crate) owner: String,
}

impl Query {
    fn until(&self) -> Millis {
        let (from, to) = self.month.bounds();
        self.now.clamp(from, to)
    }

    fn head(&self, team: Option<&str>) -> BillView {
        let (from, to) = self.month.bounds();
        // The card of the month's end: the one a reader can check the last line with.
        let card = self
            .prices
            .at(Millis(self.until().0.saturating_sub(1)).max(from));
        BillView {
            month: self.month.text(),
            zone: BILLING_ZONE.to_owned(),
            from: period::instant(from),
            to: period::instant(to),
            until: period::instant(self.until()),
            currency: card.map_or("USD", |card| &card.currency).to_owned(),
            rate_card: card.map(|card| card.id.clone()).unwrap_or_default(),
            team: team.map(str::to_owned),
            totals: BillTotals::default(),
            teams: Vec::new(),
            projects: Vec::new(),
            lines: Vec::new(),
            days: Vec::new(),
            months: self.months.clone(),
        }
    }

    /// The table of teams; `jobs` says how many of each have usage.
    pub(crate) fn all_teams(&self, jobs: &BTreeMap<String, u64>) -> BillView {
        let mut teams: BTreeMap<&str, Sums> = BTreeMap::new();
        for usage in &self.usage {
            *teams.entry(&usage.key.team).or_default() += self.prices.sums(usage);
        }
        let mut total = Rounded::default();
        let mut view = self.head(None);
        for (team, sums) in teams {
            let rounded = sums.round();
            total += rounded;
            view.teams.push(TeamBill {
                team: team.to_owned(),
                jobs: jobs.get(team).copied().unwrap_or_default(),
                totals: rounded.totals(),
            });
        }
        view.totals = total.totals();
        view.days = self.days(total);
        view
    }

    /// One team's bill with its lines.
    pub(crate) fn one_team(&self, team: &str, names: &BTreeMap<u64, JobName>) -> BillView {
        let (lines, total) = lines_of(&self.usage, &self.prices);

        let unnamed = JobName::default();
        let mut projects: BTreeMap<&str, (Rounded, BTreeSet<u64>)> = BTreeMap::new();
        let mut view = self.head(Some(team));
        for ((job, flavour), line) in &lines {
            let line = *line;
            let name = names.get(job).unwrap_or(&unnamed);
            let (sum, jobs) = projects.entry(&name.project).or_default();
            *sum += line;
            jobs.insert(*job);
            view.lines.push(BillLine {
                job: *job,
                name: name.name.clone(),
                project: name.project.clone(),
                owner: name.owner.clone(),
                flavour: (*flavour).to_owned(),
                totals: line.totals(),
            });
        }
        view.projects = projects
            .into_iter()
            .map(|(project, (sum, jobs))| ProjectBill {
                project: project.to_owned(),
                jobs: jobs.len() as u64,
                totals: sum.totals(),
            })
            .collect();
        let jobs: BTreeSet<u64> = lines.iter().map(|((job, _), _)| *job).collect();
        view.teams = vec![TeamBill {
            team: team.to_owned(),
            jobs: jobs.len() as u64,
            totals: total.totals(),
        }];
        view.totals = total.totals();
        view.days = self.days(total);
        view
    }

    /// Usage of each day of the month so far; the days add up to `total`.
    fn days(&self, total: Rounded) -> Vec<DayUsage> {
        let mut days: BTreeMap<i32, Sums> = self
            .month
            .days_until(self.until())
            .into_iter()
            .map(|day| (day, Sums::default()))
            .collect();
        for usage in &self.usage {
            *days.entry(usage.key.day).or_default() += self.prices.sums(usage);
        }
        let sums: Vec<Sums> = days.values().copied().collect();
        let rounded = Sums::round_within(&sums, total);
        days.keys()
            .zip(rounded)
            .map(|(day, day_sum)| DayUsage {
                day: period::day_text(*day),
                own_gpu_hours: hours_text(day_sum.own_hours),
                borrowed_gpu_hours: hours_text(day_sum.borrowed_hours),
            })
            .collect()
    }
}

/// A bill's line: its job and flavour, and its amounts.
type Line<'a> = ((u64, &'a str), Rounded);

/// A team's lines of a month by job and flavour, rounded so that they add up to the total.
fn lines_of<'a>(usage: &'a [Usage], prices: &Prices) -> (Vec<Line<'a>>, Rounded) {
    let mut lines: BTreeMap<(u64, &str), Sums> = BTreeMap::new();
    for usage in usage {
        *lines
            .entry((usage.key.job, &usage.key.flavour))
            .or_default() += prices.sums(usage);
    }
    let sums: Vec<Sums> = lines.values().copied().collect();
    let mut whole = Sums::default();
    sums.iter().for_each(|line| whole += *line);
    let total = whole.round();
    let rounded = Sums::round_within(&sums, total);
    (lines.into_keys().zip(rounded).collect(), total)
}

/// A job's part of a team's month, of which `usage` is all.
pub(crate) fn job_month(usage: &[Usage], prices: &Prices, job: u64) -> Rounded {
    let (lines, _) = lines_of(usage, prices);
    let mut sum = Rounded::default();
    let own = lines.into_iter().filter(|((of, _), _)| *of == job);
    own.for_each(|(_, line)| sum += line);
    sum
}

/// A job's cost so far: what the bills of its months say of it, so that no two screens differ by a rounding.
pub(crate) fn job_bill(
    months: &[(Month, Rounded)],
    prices: &Prices,
    now: Millis,
    flavour: Option<&str>,
) -> JobBill {
    let mut sum = Rounded::default();
    months.iter().for_each(|(_, part)| sum += *part);
    let card = prices.at(now);
    let rate = |of: &BTreeMap<FlavourId, u64>| {
        let micros = *of.get(&FlavourId::from(flavour?))?;
        Some(micros_text(micros))
    };
    JobBill {
        totals: sum.totals(),
        months: months
            .iter()
            .map(|(month, part)| {
                let totals = part.totals();
                JobMonth {
                    month: month.text(),
                    gpu_hours: totals.gpu_hours,
                    amount: totals.amount,
                }
            })
            .collect(),
        currency: card.map_or("USD", |card| &card.currency).to_owned(),
        own_rate: card.and_then(|card| rate(&card.own_micros)),
        borrowed_rate: card.and_then(|card| rate(&card.borrowed_micros)),
    }
}

/// A price with as many decimals as it needs, two at least: `2.95`, `1.432`.
fn micros_text(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let shortest = text.trim_end_matches('0');
    let decimals = shortest.len() - shortest.find('.').unwrap_or(0) - 1;
    if decimals >= 2 {
        shortest.to_owned()
    } else {
        text[..text.len() - 4].to_owned()
    }
}

/// What GPUs cost for a span at the prices in force, to the hundredth.
pub(crate) fn price_of(
    prices: &Prices,
    at: Millis,
    flavour: &FlavourId,
    (own, borrowed): (scheduler::MilliGpu, scheduler::MilliGpu),
    span: Millis,
) -> Option<String> {
    let card = prices.at(at)?;
    let cost = |gpus: scheduler::MilliGpu, of: &BTreeMap<FlavourId, u64>| {
        gpus.over(span).0 as i128 * i128::from(of.get(flavour).copied().unwrap_or(0))
    };
    let cost = cost(own, &card.own_micros) + cost(borrowed, &card.borrowed_micros);
    Some(money(Cents(rounded(cost, COST_PER_CENT))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(job: u64, day: i32, entitlement: &'static str, phase: &'static str) -> DayKey {
        DayKey {
            day,
            team: "fraud-ml".into(),
            job,
            flavour: "h100".into(),
            entitlement,
            phase,
            card: 0,
        }
    }

    fn query(usage: Vec<Usage>) -> Query {
        let prices = [("h100".into(), 2_950_000)].into();
        let borrowed = [("h100".into(), 2_360_000)].into();
        let card = RateCard {
            id: "list".into(),
            from: Millis(0),
            currency: "USD".into(),
            own_micros: prices,
            borrowed_micros: borrowed,
        };
        let month = Month::parse("2026-11").expect("a month");
        Query {
            month,
            now: Millis(month.bounds().0.0 + 40 * Millis::HOUR.0),
            prices: Prices::of(&[card]),
            months: vec![],
            usage,
        }
    }

    fn cents(amount: &str) -> i64 {
        amount.replace('.', "").parse().expect("an amount")
    }

    #[test]
    fn a_32_gpu_job_of_two_hours_costs_64_gpu_hours() {
        let held = 32_000 * 2 * 3_600_000;
        let usage = vec![Usage {
            key: key(1, 20_261_101, "own", "run"),
            held,
        }];
        let view = query(usage).one_team("fraud-ml", &BTreeMap::new());
        assert_eq!(
            (view.totals.gpu_hours.as_str(), view.totals.amount.as_str()),
            ("64.0000", "188.80")
        );
    }

    #[test]
    fn lines_projects_days_and_teams_add_up_to_the_total() {
        let usage: Vec<Usage> = (0..200)
            .map(|i| Usage {
                key: key(
                    i % 37,
                    20_261_101 + (i % 2) as i32,
                    ["own", "borrowed"][(i % 3 % 2) as usize],
                    "run",
                ),
                held: 7_777_777 * i128::from(i * i + 1),
            })
            .collect();
        let query = query(usage);
        let names = (0..37)
            .map(|job| {
                (
                    job,
                    JobName {
                        project: format!("p{}", job % 5),
                        ..JobName::default()
                    },
                )
            })
            .collect();
        let view = query.one_team("fraud-ml", &names);
        let total = cents(&view.totals.amount);
        assert!(total > 0);
        assert_eq!(
            view.lines
                .iter()
                .map(|line| cents(&line.totals.amount))
                .sum::<i64>(),
            total
        );
        assert_eq!(
            view.projects
                .iter()
                .map(|project| cents(&project.totals.amount))
                .sum::<i64>(),
            total
        );
        let hours: i64 = view
            .days
            .iter()
            .map(|day| cents(&day.own_gpu_hours) + cents(&day.borrowed_gpu_hours))
            .sum();
        assert_eq!(hours, cents(&view.totals.gpu_hours));
        let all = query.all_teams(&[("fraud-ml".to_owned(), 37)].into());
        assert_eq!((all.teams, all.totals), (view.teams, view.totals));
    }

    #[test]
    fn a_launch_that_never_came_up_keeps_its_quantity_at_price_0() {
        let usage = vec![Usage {
            key: key(1, 20_261_101, "own", "failed_launch"),
            held: 8_000 * 3_600_000,
        }];
        let totals = query(usage).all_teams(&BTreeMap::new()).totals;
        assert_eq!(
            (
                totals.failed_launch_gpu_hours.as_str(),
                totals.amount.as_str()
            ),
            ("8.0000", "0.00")
        );
    }

    #[test]
    fn prices_are_written_with_the_decimals_they_need() {
        assert_eq!(
            (
                micros_text(2_950_000),
                micros_text(1_432_000),
                micros_text(3_000_000)
            ),
            ("2.95".into(), "1.432".into(), "3.00".into())
        );
    }

    #[test]
    fn a_spread_meets_its_total_wherever_that_lies() {
        assert_eq!(spread(&[15, 15, 15], 10, 5), [2, 2, 1]);
        assert_eq!(spread(&[15, 0, 15], 10, 3), [2, 0, 1]);
        assert_eq!(spread(&[19, 19], 10, 1), [1, 0]);
        assert_eq!(spread(&[11, 12], 10, 7), [3, 4]);
        assert_eq!(spread(&[], 10, 0), [0i64; 0]);
    }
}
