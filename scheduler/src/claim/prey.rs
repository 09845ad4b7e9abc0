//! Who may be taken.
//!
//! - By an owner (a claim inside level L): preemptible jobs with a borrowed part, of teams that borrow from outside L.
//! - By a borrower, with `fair_reclaim`: the same, of teams whose share on the final set stays at or above its own.
//! - Inside a team, by policy: jobs of lower priority.
//!
//! Of an elastic gang whole segments may be taken, the highest ranks first, as long as it keeps its fewest pods. This is
//! tried before anybody is taken whole: `Cut`.
//!
//! Nobody is taken twice for one claimant. Who has run for less than `minimum_run`, or was taken `preemption_budget` times
//! in a day, is taken last by an owner and by nobody else. What does not run inside nominal only because it must is
//! non-preemptible, and never taken.

use super::loss::Loss;
use crate::cycle::Cycle;
use crate::quota::QuotaTree;
use crate::{
    FlavourId, Job, JobId, MilliGpu, MilliGpuMs, Millis, Phase, Placement, Priority, State,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Added to the band of whoever is to be taken last.
const LAST: u8 = 10;

/// What is offered of those who may be taken, in the order in which it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cut {
    /// Segments of elastic gangs.
    Parts,
    /// These, and all others whole.
    PartsAndOthers,
    /// Everybody whole.
    Whole,
}

impl Cut {
    pub(crate) const IN_ORDER: [Self; 3] = [Self::Parts, Self::PartsAndOthers, Self::Whole];
}

/// A segment of an elastic gang.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Pods that the gang keeps when this one goes, with all above.
    pub keeps: u32,
    /// True for the highest ranks: nothing has to go before it.
    pub is_first: bool,
}

/// A job that could be taken, or a segment of it.
pub(crate) struct Prey<'a> {
    pub job: &'a Job,
    pub id: JobId,
    pub team: usize,
    pub gpus: MilliGpu,
    /// Its number among all admissions.
    pub order: u64,
    pub placement: Arc<Placement>,
    /// `None` = all of it.
    pub part: Option<Part>,
    pub loss: Loss,
    /// What it loses when nobody saves beside it.
    pub alone: MilliGpuMs,
    pub borrows: bool,
    pub protected: bool,
}

impl<'a> Prey<'a> {
    /// All of a flavour, in order of job number; segments of one gang with the highest ranks first. Nothing when there
    /// are no elastic gangs, and segments were asked for.
    fn all(cycle: &Cycle<'a>, flavour: &FlavourId, cut: Cut) -> Vec<Self> {
        let state = cycle.state;
        let of_teams = state.laid.values().filter_map(|laid| laid.get(flavour));
        let jobs = of_teams.flatten().filter_map(|id| state.jobs.get(id));
        let mut all: Vec<_> = jobs
            .filter_map(|job| Self::of(state, &cycle.tree, job, cycle.now))
            .collect();
        all.sort_unstable_by_key(|prey| prey.id);
        if cut == Cut::Whole {
            return all;
        }
        let parts: Vec<_> = all.iter().map(Self::parts).collect();
        if parts.iter().all(Vec::is_empty) {
            return Vec::new();
        }
        let cut_up = all.into_iter().zip(parts).flat_map(|(whole, mut parts)| {
            if parts.is_empty() && cut == Cut::PartsAndOthers {
                parts.push(whole);
            }
            parts
        });
        cut_up.collect()
    }

    /// The segments that an elastic gang could do without, the highest ranks first.
    fn parts(&self) -> Vec<Self> {
        let (spec, step) = (&self.job.spec, self.job.spec.step_pods());
        let Some(allocation) = &self.job.allocation else {
            return Vec::new();
        };
        let up = self.job.phase == Phase::Running && allocation.gone.is_empty();
        let (size, least) = (allocation.size(), spec.least_pods());
        if !up || size <= least {
            return Vec::new();
        }
        let gpus = spec.gpus_of(step);
        let loss = self.loss.of_part(gpus);
        let keeps = (1..=(size - least) / step).map(|taken| size - taken * step);
        let parts = keeps.map(|keeps| {
            let ranks = keeps as usize..(keeps + step) as usize;
            let pods = (self.placement.pods.get(ranks)).unwrap_or_default();
            Self {
                gpus,
                placement: Arc::new(Placement {
                    pods: pods.to_vec(),
                    ..Placement::clone(&self.placement)
                }),
                part: Some(Part {
                    keeps,
                    is_first: keeps + step == size,
                }),
                alone: loss.alone(),
                loss,
                ..*self
            }
        });
        parts.collect()
    }

    fn of(state: &'a State, tree: &QuotaTree, job: &'a Job, now: Millis) -> Option<Self> {
        let policy = &state.policy;
        let allocation = job.allocation.as_ref()?;
        let goes = ends_soon(job, now, policy.grace);
        let lives = match job.phase {
            Phase::Admitted | Phase::Starting | Phase::Running => true,
            Phase::Queued | Phase::Reclaiming | Phase::Recovering => false,
        };
        if goes || !lives || !job.spec.preemptible || allocation.shed.is_some() {
            return None;
        }
        let loss = Loss::of(job, policy, now);
        let today = job
            .evictions
            .iter()
            .filter(|eviction| now.since(eviction.at) < Millis::DAY);
        let young =
            now.since(allocation.started.unwrap_or(allocation.admitted)) < policy.minimum_run;
        Some(Self {
            id: job.id,
            team: tree.team(&job.spec.team)?,
            gpus: allocation.gpus,
            order: allocation.order,
            placement: allocation.placement.clone(),
            part: None,
            alone: loss.alone(),
            loss,
            borrows: allocation.borrowed > MilliGpu::ZERO,
            protected: young || today.count() >= policy.preemption_budget as usize,
            job,
        })
    }

    /// Its band: the lower one goes first.
    pub(crate) fn band(&self) -> u8 {
        let priority = match (self.part, self.job.spec.priority) {
            (Some(_), _) => 0,
            (None, Priority::Low) => 1,
            (None, Priority::Normal) => 2,
            (None, Priority::High) => 3,
        };
        priority + if self.protected { LAST } else { 0 }
    }

    /// True when it was taken for this claimant before.
    pub(crate) fn was_taken_for(&self, claimant: JobId) -> bool {
        let mut evictions = self.job.evictions.iter();
        evictions.any(|eviction| eviction.claimant == claimant)
    }
}

/// True when a job is on its way out, or reaches its time limit within a grace: its room is soon free without anybody
/// being taken. A gang that keeps its nodes while others are found for those that it lost is not.
pub(crate) fn ends_soon(job: &Job, now: Millis, grace: Millis) -> bool {
    let leaves = job.leaves() || job.phase == Phase::Reclaiming;
    job.allocation.is_some()
        && (leaves || job.recovery.is_none())
        && (leaves || job.runs_until().is_some_and(|until| until <= now + grace))
}

/// By what right a claimant may take others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// It is inside this level, at that height.
    Level(usize, u32),
    /// Its share, on the final set, is no larger.
    Share,
    /// None over other teams.
    OwnTeam,
}

/// A claimant's side in the quota tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimant {
    pub job: JobId,
    pub team: usize,
    pub flavour: usize,
    pub gpus: MilliGpu,
    pub priority: Priority,
    pub right: Right,
    /// What is not preemptible claims no more than runs inside nominal.
    pub preemptible: bool,
    /// Jobs of lower priority of its own team may be taken.
    pub takes_juniors: bool,
}

impl Claimant {
    /// True when it is a job of lower priority of the claimant's own team, and the policy lets it be taken.
    pub(crate) fn is_junior(&self, prey: &Prey) -> bool {
        self.takes_juniors
            && prey.team == self.team
            && prey.job.spec.priority < self.priority
            && !prey.protected
    }

    /// What it may still be charged, as when it starts ([`Cycle::left`]).
    pub(crate) fn left(&self, tree: &QuotaTree) -> MilliGpu {
        let available = tree.available(self.team, self.flavour);
        if self.preemptible {
            available
        } else {
            available.min(tree.own_left(self.team, self.flavour))
        }
    }

    fn is_no_larger(&self, than: usize, tree: &QuotaTree) -> bool {
        matches!(
            tree.compare_shares(self.team, than),
            Some(Ordering::Less | Ordering::Equal)
        )
    }

    /// Whether a set may be taken and is enough for the claimant's quota. The tree is left as it was.
    pub(crate) fn judge(&self, set: &[&Prey], tree: &mut QuotaTree) -> Verdict {
        // Each must still be a borrower when its turn comes: the smallest first, so that the largest may straddle.
        let mut turns: Vec<&Prey> = set.to_vec();
        turns.sort_unstable_by_key(|prey| (prey.gpus, prey.id));
        let mut allowed = true;
        for prey in &turns {
            allowed &= match self.right {
                Right::Level(level, _) => {
                    self.is_junior(prey) || tree.borrows_from(prey.team, level, self.flavour)
                }
                Right::Share | Right::OwnTeam => true,
            };
            tree.give_back(prey.team, self.flavour, prey.gpus);
        }
        let enough = self.left(tree) >= self.gpus;
        if self.right == Right::Share {
            tree.charge(self.team, self.flavour, self.gpus);
            let fair = |prey: &&Prey| self.is_junior(prey) || self.is_no_larger(prey.team, tree);
            allowed &= turns.iter().all(fair);
            tree.give_back(self.team, self.flavour, self.gpus);
        }
        for prey in turns {
            tree.charge(prey.team, self.flavour, prey.gpus);
        }
        match (allowed, enough) {
            (false, _) => Verdict::NotAllowed,
            (true, false) => Verdict::Short,
            (true, true) => Verdict::Enough,
        }
    }
}

/// With everything that has to go before one of a herd does: the segments above it.
pub(crate) fn with_above(all: &[Prey], index: usize) -> std::ops::RangeInclusive<usize> {
    let mut first = index;
    while first > 0 && all[first].part.is_some_and(|part| !part.is_first) {
        first -= 1;
    }
    first..=index
}

/// True when nothing of a set stays below what goes: the highest ranks go first.
pub(crate) fn is_closed(all: &[Prey], set: &[usize]) -> bool {
    let open = |part: Part, index: usize| !part.is_first && !set.contains(&(index - 1));
    !(set.iter()).any(|&index| all[index].part.is_some_and(|part| open(part, index)))
}

/// All of a flavour who could be taken, in order of job number, and where each team's are among them.
pub(crate) struct Herd<'a> {
    pub all: Rc<Vec<Prey<'a>>>,
    of_teams: BTreeMap<usize, Vec<usize>>,
}

impl<'a> Herd<'a> {
    pub(crate) fn of(cycle: &Cycle<'a>, flavour: &FlavourId, cut: Cut) -> Self {
        let all = Prey::all(cycle, flavour, cut);
        let mut of_teams = BTreeMap::<_, Vec<_>>::new();
        for (index, prey) in all.iter().enumerate() {
            of_teams.entry(prey.team).or_default().push(index);
        }
        Self {
            all: Rc::new(all),
            of_teams,
        }
    }
}

/// Whom a claimant may take as things stand, whoever else is. Its rights over a team are found once, not for each job.
pub(crate) struct Grounds<'c, 't, 'a> {
    claimant: &'c Claimant,
    tree: &'t mut QuotaTree<'a>,
}

impl<'c, 't, 'a> Grounds<'c, 't, 'a> {
    pub(crate) fn of(claimant: &'c Claimant, tree: &'t mut QuotaTree<'a>) -> Self {
        Self { claimant, tree }
    }

    /// Indices of those who may be taken, in order.
    pub(crate) fn eligible(&mut self, herd: &Herd) -> Vec<usize> {
        let (claimant, all) = (self.claimant, &herd.all);
        let mut eligible = Vec::new();
        for (&team, jobs) in &herd.of_teams {
            let may_take = |prey: &Prey| match team == claimant.team {
                true => claimant.is_junior(prey),
                false => prey.borrows && !(prey.protected && claimant.right == Right::Share),
            };
            let some = match team == claimant.team {
                true => claimant.takes_juniors,
                false => self.may_take_from(team),
            };
            if some {
                let jobs = jobs.iter().copied();
                eligible.extend(jobs.filter(|&index| {
                    may_take(&all[index]) && !all[index].was_taken_for(claimant.job)
                }));
            }
        }
        eligible.sort_unstable();
        eligible
    }

    fn may_take_from(&mut self, team: usize) -> bool {
        let (claimant, tree) = (self.claimant, &mut *self.tree);
        match claimant.right {
            Right::Level(level, _) => tree.borrows_from(team, level, claimant.flavour),
            Right::Share => {
                tree.charge(claimant.team, claimant.flavour, claimant.gpus);
                let may = claimant.is_no_larger(team, tree);
                tree.give_back(claimant.team, claimant.flavour, claimant.gpus);
                may
            }
            Right::OwnTeam => false,
        }
    }
}

/// What a set of victims is for the claimant's quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// One of them may not be taken.
    NotAllowed,
    /// Not enough.
    Short,
    /// Enough.
    Enough,
}
