//! The auditor's own account of what is set aside: what is held, and who waits for whom.

use scheduler::{
    CohortId, Dependency, End, Fact, HoldScope, JobId, JobSpec, Name, Node, TeamId, Wants,
};
use std::collections::{BTreeMap, BTreeSet};

/// Holds, and the tree that they lie on.
#[derive(Clone, Debug, Default)]
pub(super) struct Aside {
    held: BTreeSet<HoldScope>,
    cohorts: BTreeMap<CohortId, Option<CohortId>>,
    teams: BTreeMap<TeamId, Option<CohortId>>,
    ended: BTreeMap<JobId, End>,
}

impl Aside {
    /// Takes in a fact.
    pub(super) fn take(&mut self, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::CohortSet { cohort } => {
                self.cohorts
                    .insert(cohort.id.clone(), cohort.parent.clone());
            }
            Fact::CohortRemoved { cohort } => {
                self.cohorts.remove(cohort);
                let above = self.cohorts.values_mut().chain(self.teams.values_mut());
                above
                    .filter(|above| above.as_ref() == Some(cohort))
                    .for_each(|above| *above = None);
                self.held.remove(&HoldScope::Cohort {
                    cohort: cohort.clone(),
                });
            }
            Fact::TeamSet { team } => {
                self.teams.insert(team.id.clone(), team.cohort.clone());
            }
            Fact::TeamRemoved { team } => {
                self.teams.remove(team);
                self.held.remove(&HoldScope::Team { team: team.clone() });
            }
            Fact::HoldSet { scope, .. } => drop(self.held.insert(scope.clone())),
            Fact::PolicySet {
                by: Some(by),
                why: None,
                ..
            }
            | Fact::LimitsSet { by, why: None, .. } => {
                return Err(format!(
                    "{by} has changed policies or limits without a reason"
                ));
            }
            Fact::HoldLifted { scope, .. } => {
                let known = self.held.remove(scope);
                let lost = || format!("a hold of {scope} was lifted that never was");
                known.then_some(()).ok_or_else(lost)?;
            }
            Fact::JobEnded { job, end, .. } => {
                self.held.remove(&HoldScope::Job { job: *job });
                self.ended.insert(*job, *end);
            }
            _ => {}
        }
        Ok(())
    }

    /// Fails for a start of a job that is held, or waits for another one.
    pub(super) fn start(&self, job: JobId, spec: &JobSpec) -> Result<(), String> {
        for Dependency { on, wants } in &spec.after {
            let met = match (self.ended.get(on), wants) {
                (None, _) => false,
                (Some(_), Wants::Any) => true,
                (Some(end), Wants::Ok) => *end == End::Succeeded,
            };
            if !met {
                return Err(format!(
                    "job {job} was started before job {on} had ended so"
                ));
            }
        }
        let team = spec.team.clone();
        let own = [HoldScope::Job { job }, HoldScope::Team { team }];
        let mut above = self.teams.get(&spec.team).cloned().flatten();
        let mut held = own.into_iter().find(|scope| self.held.contains(scope));
        while let (None, Some(cohort)) = (&held, above) {
            above = self.cohorts.get(&cohort).cloned().flatten();
            held = Some(HoldScope::Cohort { cohort }).filter(|scope| self.held.contains(scope));
        }
        match held {
            Some(scope) => Err(format!("job {job} was started under the hold of {scope}")),
            None => Ok(()),
        }
    }

    /// Fails for new work on a node that is held.
    pub(super) fn place(&self, job: JobId, node: &Node, levels: &[Name]) -> Result<(), String> {
        if self.held.is_empty() {
            return Ok(());
        }
        let domains = levels.iter().zip(&node.domains);
        let domains = domains.map(|(level, domain)| HoldScope::Domain {
            level: level.clone(),
            domain: domain.clone(),
        });
        let mut all = domains.chain([HoldScope::Node { node: node.id }]);
        match all.find(|scope| self.held.contains(scope)) {
            Some(scope) => Err(format!("job {job} was placed under the hold of {scope}")),
            None => Ok(()),
        }
    }
}
