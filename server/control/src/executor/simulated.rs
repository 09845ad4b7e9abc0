//! The simulated fleet: nothing runs, but everything is reported as if it did.
//!
//! All of it is a function of the seed and of the state ([`simulation::model`]), so there is nothing to store: after a
//! restart the state alone gives the same future. An operator's usual answer to a broken node is part of it
//! ([`simulation::demo::fates`]): the block's spare takes over.

use super::Executor;
use scheduler::{Command, Event, Fact, Job, JobId, Millis, NodeId, State};
use simulation::demo::fates;
use simulation::model::{Turn, next_report, next_turn};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is due. Of one time nodes come before jobs, lower numbers first: an order that a restart does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// A node breaks, or is mended.
    Node(NodeId),
    /// A gang has something to report.
    Gang(JobId),
}

/// The simulated executor.
#[derive(Debug)]
pub(crate) struct Simulated {
    seed: u64,
    /// When the fleet was put in service.
    epoch: Millis,
    agenda: BTreeSet<(Millis, Item)>,
    gangs: BTreeMap<JobId, Millis>,
    nodes: BTreeMap<NodeId, Turn>,
    /// What one due item led to, if more than one command.
    more: VecDeque<Command>,
}

impl Simulated {
    /// The executor of a fleet that was put in service at `epoch`, as it goes on after the time of `state`.
    pub(crate) fn resume(seed: u64, epoch: Millis, state: &State) -> Self {
        let mut executor = Self {
            seed,
            epoch,
            agenda: BTreeSet::new(),
            gangs: BTreeMap::new(),
            nodes: BTreeMap::new(),
            more: VecDeque::new(),
        };
        for node in state.nodes.keys() {
            executor.expect_node(*node, state.at);
        }
        for job in state.jobs.values() {
            executor.look_again(job);
        }
        executor
    }

    fn expect_node(&mut self, node: NodeId, after: Millis) {
        let (at, turn) = next_turn(self.seed, node, self.epoch, after);
        self.nodes.insert(node, turn);
        self.agenda.insert((at, Item::Node(node)));
    }

    fn look_again(&mut self, job: &Job) {
        self.forget(job.id);
        if let Some((at, _)) = next_report(self.seed, job) {
            self.gangs.insert(job.id, at);
            self.agenda.insert((at, Item::Gang(job.id)));
        }
    }

    fn forget(&mut self, job: JobId) {
        if let Some(at) = self.gangs.remove(&job) {
            self.agenda.remove(&(at, Item::Gang(job)));
        }
    }

    fn node_commands(&mut self, node: NodeId, now: Millis, state: &State) -> Vec<Command> {
        let turn = self.nodes.remove(&node);
        self.expect_node(node, now);
        turn.map(|turn| fates(state, node, turn))
            .unwrap_or_default()
    }

    fn gang_command(&mut self, job: JobId, state: &State) -> Option<Command> {
        self.gangs.remove(&job);
        let gang = state.jobs.get(&job)?;
        let (_, report) = next_report(self.seed, gang)?;
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
        if let Fact::NodeSet { node } = &event.fact
            && !self.nodes.contains_key(&node.id)
        {
            self.expect_node(node.id, event.at);
        }
        if let Some(id) = event.fact.job() {
            match state.jobs.get(&id) {
                Some(job) => self.look_again(job),
                None => self.forget(id),
            }
        }
    }
    fn go_back(&mut self, state: &State) {
        *self = Self::resume(self.seed, self.epoch, state);
    }

    fn due(&self) -> Option<Millis> {
        self.agenda.first().map(|(at, _)| *at)
    }
    fn watch(&mut self, now: Millis, state: &State) -> Option<Command> {
        loop {
            if let Some(command) = self.more.pop_front() {
                return Some(command);
            }
            let &(at, item) = self.agenda.first().filter(|(at, _)| *at <= now)?;
            self.agenda.remove(&(at, item));
            let commands = match item {
                Item::Node(node) => self.node_commands(node, at, state),
                Item::Gang(job) => self.gang_command(job, state).into_iter().collect(),
            };
            self.more.extend(commands);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scheduler::{Health, Node, Pool};

    fn node() -> Event {
        let node = Node {
            id: NodeId(3),
            name: "n3".into(),
            flavour: None,
            domains: Vec::new(),
            cards: 8,
            cpu_milli: 1_000,
            memory_mib: 1_000,
            health: Health::Ready,
            pool: Pool::Batch,
        };
        Event {
            at: Millis(1),
            fact: Fact::NodeSet { node },
        }
    }

    #[test]
    fn what_breaks_by_itself_is_mended_and_breaks_again_later() {
        let mut state = State::default();
        scheduler::apply(&mut state, &node());
        let mut executor = Simulated::resume(1, Millis(0), &state);
        let mut told = Vec::new();
        for _ in 0..3 {
            let due = executor.due().expect("a node always has a turn ahead");
            let Some(Command::SetHealth { health, why, node }) = executor.watch(due, &state) else {
                panic!("the turn is due")
            };
            assert_eq!(executor.watch(due, &state), None, "it is told once");
            scheduler::apply(
                &mut state,
                &Event {
                    at: due,
                    fact: Fact::NodeHealthSet { node, health, why },
                },
            );
            told.push(health);
        }
        assert_eq!(
            told,
            [Health::Down, Health::Spare, Health::Down],
            "a lone node is the spare of its block"
        );
    }

    #[test]
    fn an_executor_that_starts_again_has_the_same_future() {
        let mut state = State::default();
        scheduler::apply(&mut state, &node());
        let mut first = Simulated::resume(1, Millis(0), &state);
        let due = first.due().expect("a turn");
        let before = Simulated::resume(1, Millis(0), &state);
        assert_eq!(before.due(), Some(due));
        let Some(Command::SetHealth { node, health, why }) = first.watch(due, &state) else {
            panic!("a turn is due")
        };
        scheduler::apply(
            &mut state,
            &Event {
                at: due,
                fact: Fact::NodeHealthSet { node, health, why },
            },
        );
        assert_eq!(Simulated::resume(1, Millis(0), &state).due(), first.due());
    }
}
