//! The line: who waits, in order, and which of them ask for the same.
//!
//! It is made once for a cycle, however often that goes round: only of jobs that the cycle's own events name anything is new.

use crate::depend::unmet;
use crate::hold::TeamHolds;
use crate::notebook;
use crate::place::{Shape, UnknownLevel};
use crate::room::pool_of;
use crate::state::Turn;
use crate::{
    Blocker, FlavourId, Hold, JobId, JobSpec, Millis, PersonId, Pool, Priority, State, TeamId,
    Topology,
};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// Those that wait.
pub(crate) struct Line<'a> {
    /// In order of priority, first submit time and id.
    pub jobs: Vec<Candidate<'a>>,
    /// Kinds of them.
    pub kinds: usize,
}

impl<'a> Line<'a> {
    pub(crate) fn of(state: &'a State) -> Self {
        let holds = TeamHolds::of(state);
        let mut kinds = Index::<ClassKey>::default();
        let mut line = Self {
            jobs: Vec::with_capacity(state.queue.len()),
            kinds: 0,
        };
        for turn in &state.queue {
            let Some(mut job) = Candidate::of(state, &holds, turn) else {
                continue;
            };
            // What names no level that there is stands alone.
            job.kind = line.kinds;
            if let Ok(key) =
                ClassKey::of(job.spec, job.spec.least_pods(), job.span, &state.topology)
            {
                job.kind = *kinds.entry(key).or_insert(line.kinds);
            }
            line.kinds += usize::from(job.kind == line.kinds);
            line.jobs.push(job);
        }
        line
    }

    /// The line of a later state of the same cycle, whose events so far have told something of these jobs.
    pub(crate) fn later<'b>(&self, state: &'b State, told: &BTreeSet<JobId>) -> Line<'b>
    where
        'a: 'b,
    {
        let holds = TeamHolds::of(state);
        let mut line = Line {
            jobs: Vec::with_capacity(state.queue.len()),
            kinds: self.kinds,
        };
        let mut known = self.jobs.iter().peekable();
        for turn in &state.queue {
            while known.next_if(|job| job.turn() < *turn).is_some() {}
            match known.next_if(|job| job.turn() == *turn) {
                Some(job) if !told.contains(&job.id) => line.jobs.push(job.clone()),
                Some(_) | None => {
                    let new = Candidate::of(state, &holds, turn);
                    new.into_iter().for_each(|job| line.add(job));
                }
            }
        }
        line
    }

    /// True when the same jobs stand in both, and the same is known of each.
    pub(crate) fn agrees_with(&self, other: &Line) -> bool {
        let alike = |(one, other): (&Candidate, &Candidate)| {
            let kind = one.kind;
            *one == Candidate {
                kind,
                ..other.clone()
            }
        };
        self.jobs.len() == other.jobs.len() && self.jobs.iter().zip(&other.jobs).all(alike)
    }

    /// Puts a job into its place, as one of a kind; its index.
    pub(crate) fn insert(&mut self, job: Candidate<'a>) -> usize {
        let place = self
            .jobs
            .partition_point(|other| other.turn().cmp(&job.turn()) == Ordering::Less);
        self.add(job);
        self.jobs[place..].rotate_right(1);
        place
    }

    /// Adds a job at the end, as one of a kind.
    fn add(&mut self, mut job: Candidate<'a>) {
        job.kind = self.kinds;
        self.kinds += 1;
        self.jobs.push(job);
    }
}

/// What keeps a job out of the line.
pub(crate) fn aside(
    state: &State,
    holds: &TeamHolds,
    own: Option<&Hold>,
    spec: &JobSpec,
) -> Vec<Blocker> {
    let mut aside = holds.blockers(own, &spec.team);
    aside.extend(unmet(state, spec));
    aside
}

/// A waiting job, as far as the cycle is concerned.
#[derive(Clone, PartialEq)]
pub(crate) struct Candidate<'a> {
    pub id: JobId,
    pub owner: &'a PersonId,
    pub spec: &'a JobSpec,
    pub priority: Priority,
    pub submitted: Millis,
    pub attempt: u32,
    pub not_before: Option<Millis>,
    /// Makes no claim before then.
    pub no_claim_before: Option<Millis>,
    /// The longest that it may still run; `None` = no limit.
    pub span: Option<Millis>,
    /// What keeps it out of the line, whatever is free.
    pub aside: Vec<Blocker>,
    /// Number of those that ask for the same; only of this line.
    pub kind: usize,
}

impl<'a> Candidate<'a> {
    fn of(state: &'a State, holds: &TeamHolds, turn: &Turn) -> Option<Self> {
        let job = state.jobs.get(&turn.2)?;
        let (id, submitted, attempt, not_before) =
            (job.id, job.submitted, job.attempt, job.not_before);
        let limit = job.spec.time_limit;
        let mut aside = aside(state, holds, job.hold.as_ref(), &job.spec);
        aside.extend(notebook::blocker(job));
        aside.sort_by_key(Blocker::precedence);
        Some(Self {
            id,
            owner: &job.owner,
            span: limit.map(|limit| limit.since(job.ran)),
            spec: &job.spec,
            priority: job.spec.priority,
            submitted,
            attempt,
            not_before,
            aside,
            no_claim_before: job.no_claim_before,
            kind: usize::MAX,
        })
    }
    pub(crate) fn turn(&self) -> Turn {
        (Reverse(self.priority), self.submitted, self.id)
    }
    /// Until when it is not tried, if it is not tried now.
    pub(crate) fn backs_off(&self, now: Millis) -> Option<Millis> {
        self.not_before.filter(|&until| until > now)
    }
    /// True when it is not tried now: what is free does not matter to it.
    pub(crate) fn stands_aside(&self, now: Millis) -> bool {
        !self.aside.is_empty() || self.backs_off(now).is_some()
    }
}

/// What makes two jobs the same.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct ClassKey<'a> {
    pub shape: Shape,
    pool: Pool,
    team: &'a TeamId,
    flavours: &'a [FlavourId],
    preemptible: bool,
    span: Option<Millis>,
}

impl<'a> ClassKey<'a> {
    /// Of so many pods of a job that runs for `span` at most.
    pub(crate) fn of(
        spec: &'a JobSpec,
        pods: u32,
        span: Option<Millis>,
        topology: &Topology,
    ) -> Result<Self, UnknownLevel> {
        Ok(Self {
            shape: Shape::of(spec, pods, topology)?,
            pool: pool_of(spec.kind),
            team: &spec.team,
            flavours: &spec.flavours,
            preemptible: spec.preemptible,
            span,
        })
    }
}

/// Numbers by key. Only looked up, never walked: its order reaches nothing.
pub(crate) type Index<K> = HashMap<K, usize, BuildHasherDefault<Mix>>;

/// A hasher that is quick and the same everywhere; nobody outside chooses what is looked up so as to make it slow.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(26) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}
