//! The simulated fleet: nothing runs, but everything is reported as if it did.
//!
//! All of it is a function of the seed and of the state ([`simulation::model`]), so there is nothing to store: after a
//! restart the state and the nodes' entries of the journal give the same future.

use super::Executor;
use scheduler::{Command, Event, Fact, Health, Job, JobId, Millis, NodeId, State};
use simulation::model;
use std::collections::{BTreeMap, BTreeSet};

/// What is due. Of one time nodes come before jobs, lower numbers first: an order that a restart does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// A node fails, or is back.
    Node(NodeId),
    /// A gang has something to report.
    Gang(JobId),
}

/// Where a node is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fate {
    /// Failures so far.
    failures: u64,
    /// Broken by this executor, which will mend it.
    broken: bool,
    /// Its next failure, or its repair.
    due: Option<Millis>,
}

/// The simulated executor.
#[derive(Debug)]
pub(crate) struct Simulated {
    seed: u64,
    agenda: BTreeSet<(Millis, Item)>,
    gangs: BTreeMap<JobId, Millis>,
    nodes: BTreeMap<NodeId, Fate>,
}

impl Simulated {
    /// An executor of a fleet without nodes.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            agenda: BTreeSet::new(),
            gangs: BTreeMap::new(),
            nodes: BTreeMap::new(),
        }
    }

    /// The executor as it was after the last entry: `of_nodes` are the entries about nodes, oldest first.
    pub(crate) fn resume<'e>(
        seed: u64,
        state: &State,
        of_nodes: impl Iterator<Item = &'e Event>,
    ) -> Self {
        let mut executor = Self::new(seed);
        for event in of_nodes {
            executor.follow_node(event);
        }
        for job in state.jobs.values() {
            executor.look_again(job);
        }
        executor
    }

    fn look_again(&mut self, job: &Job) {
        self.forget(job.id);
        if let Some((at, _)) = model::next_report(self.seed, job) {
            self.gangs.insert(job.id, at);
            self.agenda.insert((at, Item::Gang(job.id)));
        }
    }

    fn forget(&mut self, job: JobId) {
        if let Some(at) = self.gangs.remove(&job) {
            self.agenda.remove(&(at, Item::Gang(job)));
        }
    }

    fn follow_node(&mut self, event: &Event) {
        match &event.fact {
            Fact::NodeSet { node } => self.node_is(node.id, node.health, "", event.at),
            Fact::NodeHealthSet { node, health, why } => {
                self.node_is(*node, *health, why, event.at)
            }
            _ => {}
        }
    }

    /// A node breaks only while it is ready; what broke by itself is mended, what a person took out is theirs to bring back.
    fn node_is(&mut self, node: NodeId, health: Health, why: &str, at: Millis) {
        let mut fate = self.nodes.get(&node).copied().unwrap_or(Fate {
            failures: 0,
            broken: false,
            due: None,
        });
        if let Some(due) = fate.due.take() {
            self.agenda.remove(&(due, Item::Node(node)));
        }
        let of_model = model::CAUSES.iter().any(|cause| cause.name == why);
        match health {
            Health::Down if of_model => {
                fate.broken = true;
                fate.due = Some(at + model::repair(self.seed, node, fate.failures));
            }
            Health::Ready => {
                fate.failures += u64::from(std::mem::take(&mut fate.broken));
                fate.due = Some(at + model::next_failure(self.seed, node, fate.failures).0);
            }
            Health::Down
            | Health::Degraded
            | Health::Cordoned
            | Health::Draining
            | Health::Quarantined
            | Health::Spare => {}
        }
        if let Some(due) = fate.due {
            self.agenda.insert((due, Item::Node(node)));
        }
        self.nodes.insert(node, fate);
    }

    fn node_command(&mut self, node: NodeId) -> Option<Command> {
        let fate = self.nodes.get_mut(&node)?;
        // Due once: the next time comes with the entry that this leads to.
        fate.due = None;
        let (health, why) = if fate.broken {
            (Health::Ready, "repaired".to_owned())
        } else {
            (
                Health::Down,
                model::next_failure(self.seed, node, fate.failures)
                    .1
                    .to_owned(),
            )
        };
        Some(Command::SetHealth { node, health, why })
    }

    fn gang_command(&mut self, job: JobId, state: &State) -> Option<Command> {
        self.gangs.remove(&job);
        let gang = state.jobs.get(&job)?;
        let (_, report) = model::next_report(self.seed, gang)?;
        Some(Command::Report {
            job,
            attempt: gang.attempt,
            report,
        })
    }
}

impl Executor for Simulated {
    fn bind(&mut self, gang: &Job) {
        self.look_again(gang);
    }
    fn save(&mut self, gang: &Job) {
        self.look_again(gang);
    }
    fn stop(&mut self, gang: &Job) {
        self.look_again(gang);
    }
    fn recorded(&mut self, event: &Event, state: &State) {
        self.follow_node(event);
        if let Some(id) = crate::words::job_of(&event.fact) {
            match state.jobs.get(&id) {
                Some(job) => self.look_again(job),
                None => self.forget(id),
            }
        }
    }
    fn due(&self) -> Option<Millis> {
        self.agenda.first().map(|(at, _)| *at)
    }
    fn watch(&mut self, now: Millis, state: &State) -> Option<Command> {
        while let Some(&(at, item)) = self.agenda.first().filter(|(at, _)| *at <= now) {
            self.agenda.remove(&(at, item));
            let command = match item {
                Item::Node(node) => self.node_command(node),
                Item::Gang(job) => self.gang_command(job, state),
            };
            if command.is_some() {
                return command;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(at: Millis, health: Health, why: &str) -> Event {
        Event {
            at,
            fact: Fact::NodeHealthSet {
                node: NodeId(3),
                health,
                why: why.to_owned(),
            },
        }
    }

    #[test]
    fn what_breaks_by_itself_is_mended_and_breaks_again_later() {
        let mut executor = Simulated::new(1);
        executor.follow_node(&health(Millis(0), Health::Ready, "new"));
        let state = State::default();
        let breaks = executor.due().expect("a ready node has a failure ahead");
        let Some(Command::SetHealth {
            health: Health::Down,
            why,
            ..
        }) = executor.watch(breaks, &state)
        else {
            panic!("the failure is due")
        };
        assert_eq!(executor.watch(breaks, &state), None, "it is told once");
        executor.follow_node(&health(breaks, Health::Down, &why));
        let mended = executor.due().expect("what broke is mended");
        let back = executor.watch(mended, &state);
        assert!(
            matches!(
                back,
                Some(Command::SetHealth {
                    health: Health::Ready,
                    ..
                })
            ),
            "{back:?}"
        );
        executor.follow_node(&health(mended, Health::Ready, "repaired"));
        assert!(executor.due().is_some_and(|again| again > mended));
    }

    #[test]
    fn what_a_person_took_out_stays_out() {
        let mut executor = Simulated::new(1);
        executor.follow_node(&health(Millis(0), Health::Ready, "new"));
        executor.follow_node(&health(Millis(5), Health::Cordoned, "new firmware"));
        assert_eq!(executor.due(), None);
    }
}
