//! Who asks for what, and when: arrivals from a seed, hour by hour.
//!
//! What arrives in an hour is a function of the seed and the hour alone, so that a restarted server goes on with the
//! same people wanting the same things. The shape leans on published fleets: half of the jobs ask 1 to 8 GPUs (fewer than
//! there, since pressed teams ask for more), some 16 to 256, a few 512; GPU-time is in the large ones; nights and weekends are quiet.

use super::people::person;
use super::teams::TeamRow;
use super::{A100, H100, TEAMS};
use crate::draw::Draws;
use crate::model::median_run_time;
use scheduler::{
    CheckpointContract, FlavourId, JobKind, JobSpec, MilliGpu, Millis, PersonId, Priority,
    Segments, TopologyMode, TopologyRequest,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// A job that somebody submits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Millis,
    /// Who.
    pub owner: PersonId,
    /// What.
    pub spec: Arc<JobSpec>,
}

/// Arrivals in an hour of average business, in hundredths.
const ARRIVALS_E2: u64 = 1_250;
/// Business of each hour of a weekday in UTC, in per cent of the average.
const DAY: [u64; 24] = [
    55, 50, 45, 45, 50, 60, 80, 110, 140, 155, 160, 150, 135, 145, 155, 150, 140, 125, 110, 95, 85,
    80, 75, 65,
];
/// A weekend's business, in per cent of a weekday's.
const WEEKEND: u64 = 80;
/// GPUs of a job, with how often they are asked for.
const SIZES: [(u64, u64); 10] = [
    (1, 300),
    (2, 90),
    (4, 90),
    (8, 210),
    (16, 110),
    (32, 100),
    (64, 84),
    (128, 48),
    (256, 18),
    (512, 4),
];
/// GPUs in a node.
const NODE_GPUS: u64 = 8;
/// Largest job on A100: their two blocks are for smaller work.
const A100_MOST: u64 = 64;
/// Every team thinks of A100 jobs as if it owned a node at least.
const A100_LEAST: u64 = 8;
/// Teams that may borrow little or nothing have more work than quota: they come so much more often (of 2), and do not
/// bother with less than half of their largest job.
const PRESSED: u64 = 5;

/// Arrivals from one seed, from one time on. Endless.
#[derive(Clone, Debug)]
pub struct Workload {
    draws: Draws,
    from: Millis,
    hour: u64,
    ready: VecDeque<Arrival>,
}

impl Workload {
    /// Arrivals at or after `from`.
    pub fn new(seed: u64, from: Millis) -> Self {
        Self {
            draws: Draws::new(seed).of(0x776f_726b),
            from,
            hour: from.0 / Millis::HOUR.0,
            ready: VecDeque::new(),
        }
    }
}

impl Iterator for Workload {
    type Item = Arrival;
    fn next(&mut self) -> Option<Arrival> {
        while self.ready.is_empty() {
            let from = self.from;
            self.ready.extend(
                arrivals_of(self.draws, self.hour)
                    .into_iter()
                    .filter(|arrival| arrival.at >= from),
            );
            self.hour += 1;
        }
        self.ready.pop_front()
    }
}

/// Arrivals in an hour, in hundredths: by day of the week and time of day. Hour 0 was a Thursday's first.
const fn rate_e2(hour: u64) -> u64 {
    let weekday = (hour / 24 + 3) % 7;
    let business = if weekday >= 5 {
        DAY[(hour % 24) as usize] * WEEKEND
    } else {
        DAY[(hour % 24) as usize] * 100
    };
    ARRIVALS_E2 * business / 10_000
}

fn arrivals_of(draws: Draws, hour: u64) -> Vec<Arrival> {
    let draws = draws.of(hour);
    let mean_gap = Millis(Millis::HOUR.0 * 100 / rate_e2(hour).max(1));
    let mut all = Vec::new();
    let mut at = Millis::hours(hour);
    for number in 0.. {
        at += draws.exponential(number, mean_gap);
        if at >= Millis::hours(hour + 1) {
            break;
        }
        all.push(arrival(draws.of(number), at));
    }
    all
}

/// What a draw is for, inside one arrival.
#[derive(Clone, Copy)]
enum Pick {
    Team,
    Size,
    Kind,
    Project,
    Work,
    Number,
    Person,
    Priority,
    Period,
    Version,
    Save,
    Close,
}

fn arrival(draws: Draws, at: Millis) -> Arrival {
    let team = &TEAMS[draws.weighted(Pick::Team as u64, TEAMS.iter().map(pull))];
    let wish = SIZES[draws.weighted(Pick::Size as u64, SIZES.iter().map(|(_, weight)| *weight))].0;
    let flavours = flavours(draws, team, wish);
    let most = if flavours[0] == A100 {
        most_of(team.a100.max(A100_LEAST), team.borrows).min(A100_MOST)
    } else {
        most_of(team.h100, team.borrows)
    };
    let least = if team.borrows.is_some() { most / 2 } else { 1 };
    let gpus = wish.clamp(least, most);
    let word = if draws.happens(Pick::Person as u64, 600) {
        "engineer"
    } else {
        "analyst"
    };
    Arrival {
        at,
        owner: person(team.id, word),
        spec: Arc::new(spec(draws, team, gpus, &flavours)),
    }
}

/// How often a team comes, in shares.
fn pull(team: &TeamRow) -> u64 {
    team.share * if team.borrows.is_some() { PRESSED } else { 2 }
}

/// The largest job that a team thinks of: twice its own GPUs, or half of all that it could ever have where that is
/// limited; a power of two.
fn most_of(own: u64, borrows: Option<u64>) -> u64 {
    let most = borrows
        .map_or(own * 2, |limit| (own + limit) / 2)
        .clamp(NODE_GPUS, 512);
    1 << most.ilog2()
}

fn flavours(draws: Draws, team: &TeamRow, gpus: u64) -> Vec<&'static str> {
    match draws.below(Pick::Kind as u64, 100) {
        0..38 if team.a100 > 0 && gpus <= A100_MOST => vec![A100],
        38..42 if team.a100 > 0 && gpus <= NODE_GPUS => vec![A100, H100],
        42..47 if team.a100 > 0 && gpus <= NODE_GPUS => vec![H100, A100],
        _ => vec![H100],
    }
}

fn spec(draws: Draws, team: &TeamRow, gpus: u64, flavours: &[&str]) -> JobSpec {
    let pods = gpus.div_ceil(NODE_GPUS);
    let per_pod = gpus / pods;
    let train = gpus >= NODE_GPUS;
    let pick = |of: &'static [&'static str], what: Pick| {
        of[draws.below(what as u64, of.len() as u64) as usize]
    };
    let stem = pick(team.work, Pick::Work);
    let short = team.id.split('-').next().unwrap_or(team.id);
    let version = draws.below(Pick::Version as u64, 24);
    JobSpec {
        name: format!("{stem}-{:04}", draws.below(Pick::Number as u64, 10_000)),
        team: team.id.into(),
        project: pick(team.projects, Pick::Project).to_owned(),
        kind: if train {
            JobKind::Train
        } else {
            JobKind::Batch
        },
        flavours: flavours
            .iter()
            .map(|flavour| FlavourId::from(*flavour))
            .collect(),
        image: format!(
            "{short}/{}:{}.{}",
            if train { "train" } else { "run" },
            3 + version / 12,
            version % 12
        ),
        priority: match draws.below(Pick::Priority as u64, 10) {
            0 => Priority::High,
            1 | 2 => Priority::Low,
            _ => Priority::Normal,
        },
        pods: pods as u32,
        min_pods: None,
        gpus_per_pod: MilliGpu::gpus(per_pod),
        cpu_milli_per_pod: per_pod * 22_000,
        memory_mib_per_pod: per_pod * 200_000,
        topology: topology(draws, pods),
        time_limit: Some(time_limit(gpus)),
        checkpoint: train.then(|| contract(draws, gpus)),
        preemptible: true,
        restart_budget: if train { 5 } else { 1 },
        after: Vec::new(),
        run_time: None,
    }
}

/// A limit that one job in a hundred or fewer reaches: ten times the median, rounded up to a usual one.
fn time_limit(gpus: u64) -> Millis {
    let ten = median_run_time(gpus).0 * 10;
    let usual = [1, 2, 3, 5, 7].map(|days| Millis(days * Millis::DAY.0));
    usual
        .into_iter()
        .find(|limit| limit.0 >= ten)
        .unwrap_or(usual[4])
}

/// Gangs want to lie close: in a rack up to 64 GPUs, in a block up to 256, in whole segments beyond. A few insist.
fn topology(draws: Draws, pods: u64) -> TopologyRequest {
    let request = |mode, level: Option<&str>, segments| TopologyRequest {
        mode,
        level: level.map(Into::into),
        segments,
    };
    let mode = if draws.happens(Pick::Close as u64, 120) {
        TopologyMode::Required
    } else {
        TopologyMode::Preferred
    };
    match pods {
        0..=1 => request(TopologyMode::Unconstrained, None, None),
        2..=8 => request(mode, Some("rack"), None),
        9..=32 => request(mode, Some("block"), None),
        _ => request(
            TopologyMode::Preferred,
            Some("block"),
            Some(Segments { pods: 32 }),
        ),
    }
}

/// Saves every two to four hours; larger gangs save longer.
fn contract(draws: Draws, gpus: u64) -> CheckpointContract {
    let save = 12 + gpus / 8 + draws.below(Pick::Save as u64, 20);
    CheckpointContract {
        period: Millis::minutes(120 + 30 * draws.below(Pick::Period as u64, 5)),
        save: Millis::seconds(save),
        on_demand: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Monday.
    const MONDAY: Millis = Millis(1_735_689_600_000 + 5 * Millis::DAY.0);

    fn week() -> Vec<Arrival> {
        Workload::new(7, MONDAY)
            .take_while(|arrival| arrival.at < Millis(MONDAY.0 + 7 * Millis::DAY.0))
            .collect()
    }

    #[test]
    fn a_later_start_sees_the_same_people_want_the_same_things() {
        let noon = Millis(MONDAY.0 + 2 * Millis::DAY.0 + Millis::HOUR.0 / 2);
        let later: Vec<Arrival> = Workload::new(7, noon).take(20).collect();
        let all: Vec<Arrival> = Workload::new(7, MONDAY)
            .filter(|arrival| arrival.at >= noon)
            .take(20)
            .collect();
        assert_eq!(later, all);
        assert!(later.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }

    #[test]
    fn half_of_the_jobs_are_small_and_most_gpus_are_in_large_ones() {
        let sizes: Vec<u64> = week()
            .iter()
            .map(|arrival| arrival.spec.gpus().whole())
            .collect();
        let small = sizes.iter().filter(|gpus| **gpus <= 8).count();
        assert!(small * 10 > sizes.len() * 4, "{small} of {}", sizes.len());
        let large: u64 = sizes.iter().filter(|gpus| **gpus >= 32).sum();
        assert!(large * 10 > sizes.iter().sum::<u64>() * 6);
        assert!(sizes.contains(&256));
    }

    #[test]
    fn nights_and_weekends_are_quiet() {
        let in_hours = |days: std::ops::Range<u64>, hours: std::ops::Range<u64>| {
            let hour_of_week = |arrival: &Arrival| arrival.at.since(MONDAY).0 / Millis::HOUR.0;
            week()
                .iter()
                .map(hour_of_week)
                .filter(|hour| days.contains(&(hour / 24)) && hours.contains(&(hour % 24)))
                .count()
        };
        assert!(in_hours(0..5, 8..18) > 2 * in_hours(0..5, 0..6));
        assert!(in_hours(5..7, 0..24) * 5 < in_hours(0..5, 0..24) * 2);
    }

    #[test]
    fn a_team_with_a_limit_asks_for_what_it_can_have() {
        for arrival in Workload::new(3, MONDAY).take(3_000) {
            let team = TEAMS
                .iter()
                .find(|team| arrival.spec.team.as_str() == team.id)
                .expect("a demo team");
            let own = if arrival.spec.flavours[0].as_str() == A100 {
                team.a100
            } else {
                team.h100
            };
            let could = team.borrows.map_or(u64::MAX, |limit| own + limit);
            assert!(arrival.spec.gpus().whole() <= could, "{arrival:?}");
        }
    }
}
