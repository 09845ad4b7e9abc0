//! What scenarios say of facts, claims and blockers: in the words of their texts.

use super::Script;
use super::world::on_nodes;
use scheduler::*;
use std::fmt::Write as _;

impl Script<'_> {
    pub(super) fn fact(&self, fact: &Fact) -> Option<String> {
        Some(match fact {
            Fact::JobAdmitted { job, placement, .. } => {
                let nodes = on_nodes(&self.world.state, &placement.pods);
                let nodes = nodes.iter().map(|(node, pods)| match pods {
                    1 => node.clone(),
                    pods => format!("{node} x{pods}"),
                });
                let within = placement
                    .within
                    .map(|level| &self.world.state.topology.levels[usize::from(level)]);
                let within = within.filter(|_| self.world.state.topology.levels.len() > 1);
                let within = within.map_or(String::new(), |level| format!(" within {level}"));
                format!(
                    "{} admitted on {}{within}",
                    self.job(*job),
                    nodes.collect::<Vec<_>>().join(" ")
                )
            }
            Fact::StopRequested {
                job, cause, end, ..
            } => {
                let cause = match cause {
                    StopCause::Person { by, .. } => format!("by {by}"),
                    StopCause::TimeLimit => "by its time limit".into(),
                    StopCause::NodeLost { node, .. } => {
                        format!("by loss of {}", self.world.state.nodes[node].node.name)
                    }
                    StopCause::LaunchTimeout => "by launch time-out".into(),
                    StopCause::Exited { code } => format!("by exit {code}"),
                    StopCause::Reclaim { claimant, .. } => format!("for {}", self.job(*claimant)),
                };
                let then = end.map_or("to wait again".into(), |end| {
                    format!("to end {end:?}").to_lowercase()
                });
                format!("{} stopped {cause}, {then}", self.job(*job))
            }
            Fact::JobRequeued {
                job, not_before, ..
            } => {
                let after = not_before
                    .map(|until| format!(" for {} s", until.since(self.world.now).0 / 1_000));
                format!("{} requeued{}", self.job(*job), after.unwrap_or_default())
            }
            Fact::JobEnded { job, end, .. } => {
                format!("{} ended {end:?}", self.job(*job)).to_lowercase()
            }
            Fact::ClaimRequested { job, claim } => {
                let seconds = claim
                    .deadline
                    .map_or(0, |at| at.since(self.world.now).0 / 1_000);
                format!(
                    "{} asks for {}, within {seconds} s",
                    self.job(*job),
                    self.of_claim(claim)
                )
            }
            Fact::ClaimMade { job, claim } => {
                format!("{} takes {}", self.job(*job), self.of_claim(claim))
            }
            Fact::ClaimApproved { job, by, .. } => {
                let by = by
                    .as_ref()
                    .map_or("its deadline".into(), ToString::to_string);
                format!("claim of {} approved by {by}", self.job(*job))
            }
            Fact::ClaimDeclined { job, by, .. } => {
                format!("claim of {} declined by {by}", self.job(*job))
            }
            Fact::ClaimDeferred {
                job, by, deadline, ..
            } => {
                let seconds = deadline.since(self.world.now).0 / 1_000;
                format!(
                    "claim of {} put off by {by} for {seconds} s",
                    self.job(*job)
                )
            }
            Fact::ClaimWithdrawn { job, why, .. } => {
                let why = match why {
                    Withdrawal::ClaimantGone => "the claimant is gone".into(),
                    Withdrawal::TargetLost { node } => {
                        format!("{} is lost", self.world.state.nodes[node].node.name)
                    }
                    Withdrawal::QuotaGone => "its quota is gone".into(),
                    Withdrawal::NothingToTake => "nothing to take".into(),
                    Withdrawal::Deadline => "its deadline".into(),
                };
                format!("claim of {} withdrawn: {why}", self.job(*job))
            }
            Fact::SaveAsked { job, until, .. } => {
                let seconds = until.since(self.world.now).0 / 1_000;
                format!("{} asked to save within {seconds} s", self.job(*job))
            }
            Fact::HourPassed => "hour".into(),
            Fact::NodeHealthSet { .. } => return None,
            other => format!("{other:?}")
                .split_whitespace()
                .next()
                .unwrap_or_default()
                .to_lowercase(),
        })
    }

    pub(super) fn of_claim(&self, claim: &Claim) -> String {
        let victims: Vec<_> = claim
            .victims
            .iter()
            .map(|victim| self.job(victim.job))
            .collect();
        let nodes = on_nodes(&self.world.state, &claim.placement.pods);
        let nodes: Vec<_> = nodes.into_iter().map(|(node, _)| node).collect();
        let right = match &claim.basis {
            Basis::Owner { height: 0, .. } => "as owner".into(),
            Basis::Owner { cohort, .. } => {
                format!(
                    "inside {}",
                    cohort.as_ref().map_or("", |cohort| cohort.as_str())
                )
            }
            Basis::Priority => "by priority".into(),
            Basis::FairShare => "by fair share".into(),
        };
        format!("{} from {} {right}", nodes.join(" "), victims.join(" "))
    }

    pub(super) fn blocker(&self, blocker: &Blocker) -> String {
        match blocker {
            Blocker::Claim {
                leaving,
                until,
                stage,
                ..
            } => {
                let leaving: Vec<_> = leaving.iter().map(|job| self.job(*job)).collect();
                let seconds = until.since(self.world.now).0 / 1_000;
                let stage = format!("{stage:?}").to_lowercase();
                format!("claim {stage}: {} within {seconds} s", leaving.join(" "))
            }
            Blocker::Misconfigured { field, names } => format!("misconfigured {field} {names}"),
            Blocker::NoMatchingFlavour { team } => format!("{team} has none of its flavours"),
            Blocker::ExceedsMaximum { asks, limit, of } => {
                let of = match of {
                    Scope::Fleet => "the fleet".into(),
                    Scope::Team { team } => format!("team {team}"),
                    Scope::Domain { level } => format!("a {level}"),
                    Scope::Node => "any node".into(),
                };
                format!("can never run: asks {asks}, limit {limit} of {of}")
            }
            Blocker::BackOff { until } => {
                format!("backs off for {} s", until.since(self.world.now).0 / 1_000)
            }
            Blocker::Quota {
                flavour,
                asks,
                available,
                at,
                holders,
                ..
            } => {
                let mut text = format!("quota {flavour}: asks {asks}, {available} left");
                let at = at
                    .as_ref()
                    .map_or("its own limit".into(), |at| format!("in {at}"));
                let _ = write!(text, " ({at}");
                for (team, held) in holders {
                    let _ = write!(text, ", {team} borrows {held}");
                }
                text + ")"
            }
            Blocker::BehindReservation { job, planned } => {
                format!("behind {}{}", self.job(*job), self.at(*planned))
            }
            Blocker::Room {
                flavour,
                level,
                asks_pods,
                best_pods,
                best_domain,
                segments,
            } => {
                let at = level
                    .as_ref()
                    .map_or("anywhere".into(), |level| format!("in one {level}"));
                let best = best_domain
                    .as_ref()
                    .map_or(String::new(), |domain| format!(" ({domain})"));
                let segments = segments.map_or(String::new(), |(asks, fit)| {
                    format!(", {fit} of {asks} segments")
                });
                format!(
                    "room {flavour} {at}: asks {asks_pods} pods, best {best_pods}{best}{segments}"
                )
            }
        }
    }

    pub(super) fn at(&self, planned: Option<Millis>) -> String {
        planned.map_or(String::new(), |at| {
            let minutes = at.since(self.world.now).0 / 60_000;
            format!(" (planned in {minutes} min)")
        })
    }
}
