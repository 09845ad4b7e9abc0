//! Whether a plan still stands after what has happened while it was made.
//!
//! A cycle reads one state, and may take tens of milliseconds on a large fleet. Whoever plans beside the writer makes it on
//! a numbered state and lets the journal go on; what has come in since decides whether the plan may be carried out as
//! it is. The rule is narrow on purpose: nothing may have changed that a plan reads of quota, room or rules, and no job that
//! the plan names. What is left is what comes in all the time: new jobs (they are looked at in the next cycle, as if they
//! had come a moment later), and an end of jobs that only waited. Everything else asks for another plan.

use crate::{Event, Fact, JobId, Plan, State};
use std::collections::BTreeSet;

impl Plan {
    /// True when the plan that was made on `state` may be carried out after these facts, too.
    pub fn stands<'a>(&self, state: &State, since: impl IntoIterator<Item = &'a Fact>) -> bool {
        let named: BTreeSet<JobId> = self.events.iter().flat_map(named).collect();
        since.into_iter().all(|fact| match fact {
            Fact::JobSubmitted { .. } => true,
            Fact::JobEnded { job, .. } => {
                // One that came in meanwhile is in no plan, and had nothing.
                let known = state.jobs.get(job);
                !named.contains(job) && known.is_none_or(|job| job.allocation.is_none())
            }
            _ => false,
        })
    }
}

/// The jobs that an event is about.
fn named(event: &Event) -> BTreeSet<JobId> {
    let mut named: BTreeSet<JobId> = event.fact.job().into_iter().collect();
    if let Fact::ClaimMade { claim, .. } | Fact::ClaimRequested { claim, .. } = &event.fact {
        named.insert(claim.claimant);
        named.extend(claim.victims.iter().map(|victim| victim.job));
        named.extend(&claim.awaits);
    }
    named
}
