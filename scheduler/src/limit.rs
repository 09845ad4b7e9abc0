//! Limits on how much runs and waits at once: of a team, of each person in a team, of each person over all teams.
//! (Slurm: `GrpJobs`, `MaxJobsPerUser`, `MaxSubmitJobs`, `MaxTRESPerUser` of an association or a QOS.)
//!
//! A job counts as running from admit to confirmed exit, and as waiting otherwise, whatever it waits for. A job whose start
//! would pass a limit on what runs waits, with that limit as its reason; it gets no planned start, since no end of others
//! is known to help it, and makes no claim. (Slurm's backfill passes over such jobs, too.) A claim that is made counts
//! as running: its place is kept with its room. A limit on what waits is judged at the submit, and refuses it: a requeue
//! is never refused. Limits that are cut stop nothing; what is over ends by itself.

use crate::decide::invalid;
use crate::{Blocker, Job, JobSpec, MilliGpu, PersonId, Phase, Refusal, State, TeamId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How much may run and wait at once; `None` = no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Jobs that run.
    pub running_jobs: Option<u32>,
    /// Jobs that wait.
    pub waiting_jobs: Option<u32>,
    /// GPUs of the jobs that run, of all flavours together.
    pub running_gpus: Option<MilliGpu>,
}

/// Whose limit it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "whose", rename_all = "snake_case")]
pub enum LimitOf {
    /// Of all jobs of a team.
    Team {
        /// The team.
        team: TeamId,
    },
    /// Of one person's jobs in a team.
    Member {
        /// The team.
        team: TeamId,
        /// The person.
        person: PersonId,
    },
    /// Of one person's jobs, whatever the team.
    Person {
        /// The person.
        person: PersonId,
    },
}

/// What a limit counts, and how far it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "counts", rename_all = "snake_case")]
pub enum Limited {
    /// Running jobs.
    Jobs {
        /// The most.
        limit: u32,
        /// Those that run.
        run: u32,
    },
    /// GPUs of running jobs.
    Gpus {
        /// The most.
        limit: MilliGpu,
        /// Those of the jobs that run.
        run: MilliGpu,
        /// What the job asks.
        asks: MilliGpu,
    },
}

impl Limited {
    /// True when the job alone is too much: nobody's end helps.
    pub(crate) fn is_for_ever(self) -> bool {
        match self {
            Self::Jobs { limit, .. } => limit == 0,
            Self::Gpus { limit, asks, .. } => asks > limit,
        }
    }
}

/// How many jobs somebody has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Jobs that wait.
    pub waiting: u32,
    /// Jobs that run: from admit to confirmed exit.
    pub running: u32,
    /// GPUs of these.
    pub gpus: MilliGpu,
}

impl Load {
    /// One job's part.
    pub(crate) fn of(job: &Job) -> Self {
        match job.phase {
            Phase::Queued => Self {
                waiting: 1,
                ..Self::default()
            },
            Phase::Admitted
            | Phase::Starting
            | Phase::Running
            | Phase::Reclaiming
            | Phase::Recovering => {
                let has = job.allocation.as_ref();
                Self::running(has.map_or(MilliGpu::ZERO, |allocation| allocation.gpus))
            }
        }
    }

    fn running(gpus: MilliGpu) -> Self {
        Self {
            waiting: 0,
            running: 1,
            gpus,
        }
    }

    fn add(&mut self, other: Self) {
        self.waiting += other.waiting;
        self.running += other.running;
        self.gpus += other.gpus;
    }

    fn remove(&mut self, other: Self) {
        self.waiting = self.waiting.saturating_sub(other.waiting);
        self.running = self.running.saturating_sub(other.running);
        self.gpus = self.gpus.minus(other.gpus);
    }

    /// What a job that asks so much would pass if it ran, too.
    fn passed(self, asks: MilliGpu, limits: Limits) -> impl Iterator<Item = Limited> {
        let run = self.gpus;
        let jobs = limits.running_jobs.filter(|&limit| self.running >= limit);
        let jobs = jobs.map(|limit| Limited::Jobs {
            limit,
            run: self.running,
        });
        let gpus = limits.running_gpus.filter(|&limit| run + asks > limit);
        let gpus = gpus.map(|limit| Limited::Gpus { limit, run, asks });
        jobs.into_iter().chain(gpus)
    }
}

/// A job's part changes: it came in, started, waits again, or ended.
pub(crate) fn recount(state: &mut State, job: &Job, before: Load, after: Load) {
    if before == after {
        return;
    }
    let of_team = state.load.entry(job.spec.team.clone()).or_default();
    let load = of_team.entry(job.owner.clone()).or_default();
    load.add(after);
    load.remove(before);
    if *load == Load::default() {
        of_team.remove(&job.owner);
    }
    if of_team.is_empty() {
        state.load.remove(&job.spec.team);
    }
}

/// Refuses a submit that would make too many wait.
pub(crate) fn may_wait(state: &State, owner: &PersonId, spec: &JobSpec) -> Result<(), Refusal> {
    let name = &spec.team;
    let Some(team) = state.teams.get(name) else {
        return Ok(());
    };
    let of_person = |loads: &BTreeMap<PersonId, Load>| loads.get(owner).map_or(0, |l| l.waiting);
    let of_team = state.load.get(name);
    let by_all = || of_team.into_iter().flat_map(BTreeMap::values);
    let refuse = |limit: Option<u32>, waiting: u32, whose: String| match limit {
        Some(limit) if waiting >= limit => Err(invalid(
            "team",
            format!(
                "{whose} may have {limit} waiting jobs at once, and {waiting} wait: submit it again when one of them has \
                 started, or cancel one"
            ),
        )),
        Some(_) | None => Ok(()),
    };
    refuse(
        team.limits.waiting_jobs,
        by_all().map(|load| load.waiting).sum(),
        format!("`{name}`"),
    )?;
    refuse(
        team.person_limits.waiting_jobs,
        of_team.map_or(0, of_person),
        format!("`{owner}` in `{name}`"),
    )?;
    refuse(
        state.policy.person_limits.waiting_jobs,
        state.load.values().map(of_person).sum(),
        format!("`{owner}`"),
    )
}

/// What runs, by team and person, as a cycle goes on. Nothing is kept when there is no limit at all.
pub(crate) struct Running<'a> {
    state: &'a State,
    any: bool,
    teams: BTreeMap<&'a TeamId, Load>,
    members: BTreeMap<(&'a TeamId, &'a PersonId), Load>,
    people: BTreeMap<&'a PersonId, Load>,
}

impl<'a> Running<'a> {
    /// As the cycle begins.
    pub(crate) fn of(state: &'a State) -> Self {
        let none = Limits::default();
        let mut limits = state.teams.values();
        let any = state.policy.person_limits != none
            || limits.any(|team| team.limits != none || team.person_limits != none);
        let mut running = Self {
            state,
            any,
            teams: BTreeMap::new(),
            members: BTreeMap::new(),
            people: BTreeMap::new(),
        };
        for (team, loads) in state.load.iter().filter(|_| any) {
            for (person, &load) in loads {
                running.add(team, person, load);
            }
        }
        running
    }

    fn add(&mut self, team: &'a TeamId, person: &'a PersonId, load: Load) {
        self.teams.entry(team).or_default().add(load);
        self.members.entry((team, person)).or_default().add(load);
        self.people.entry(person).or_default().add(load);
    }

    /// One more runs, with so many GPUs.
    pub(crate) fn start(&mut self, spec: &'a JobSpec, gpus: MilliGpu, owner: &'a PersonId) {
        if self.any {
            self.add(&spec.team, owner, Load::running(gpus));
        }
    }

    /// Every limit that the start of a job with so many GPUs would pass.
    pub(crate) fn passed(&self, spec: &JobSpec, gpus: MilliGpu, owner: &PersonId) -> Vec<Blocker> {
        if !self.any {
            return Vec::new();
        }
        let (mut all, name) = (Vec::new(), &spec.team);
        let mut judge = |load: Option<&Load>, limits: Limits, of: LimitOf| {
            let passed = load.copied().unwrap_or_default().passed(gpus, limits);
            all.extend(passed.map(|on| Blocker::Limit { of: of.clone(), on }));
        };
        if let Some(team) = self.state.teams.get(name) {
            let of = LimitOf::Team { team: name.clone() };
            judge(self.teams.get(name), team.limits, of);
            let of = LimitOf::Member {
                team: name.clone(),
                person: owner.clone(),
            };
            judge(self.members.get(&(name, owner)), team.person_limits, of);
        }
        let of = LimitOf::Person {
            person: owner.clone(),
        };
        judge(self.people.get(owner), self.state.policy.person_limits, of);
        all
    }
}

/// What must always be true of the count: it is that of the jobs, without zeros.
pub(crate) fn check(state: &State) -> Result<(), String> {
    let mut counted = BTreeMap::<TeamId, BTreeMap<PersonId, Load>>::new();
    for job in state.jobs.values() {
        let of_team = counted.entry(job.spec.team.clone()).or_default();
        let load = of_team.entry(job.owner.clone()).or_default();
        load.add(Load::of(job));
    }
    match counted == state.load {
        true => Ok(()),
        false => Err(format!(
            "jobs are counted as {:?}, they are {counted:?}",
            state.load
        )),
    }
}
