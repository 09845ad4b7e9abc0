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
                    StopCause::Stalled { silent, .. } if silent.is_empty() => "by a stall".into(),
                    StopCause::Stalled { silent, .. } => {
                        let silent = silent.iter().map(|node| self.name(*node));
                        let silent: Vec<_> = silent.collect();
                        format!("by a stall, {} silent", silent.join(" "))
                    }
                    StopCause::LaunchTimeout => "by launch time-out".into(),
                    StopCause::Exited { code } => format!("by exit {code}"),
                    StopCause::Drained { scope, .. } => {
                        format!("by drain of {}", self.of_scope(scope))
                    }
                    StopCause::Idle { since } => {
                        let minutes = self.world.now.since(*since).0 / 60_000;
                        format!("as idle for {minutes} min")
                    }
                    StopCause::Suspend { by, .. } => format!("by {by} to suspend it"),
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
                    Withdrawal::ClaimantSetAside => "the claimant is set aside".into(),
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
            Fact::ShrinkRequested {
                job,
                keeps,
                claimant,
                ..
            } => {
                let (job, claimant) = (self.job(*job), self.job(*claimant));
                format!("{job} stops pods for {claimant}, to keep {keeps}")
            }
            Fact::GangShrunk {
                job, keeps, cause, ..
            } => {
                let without = match cause {
                    StopCause::NodeLost { node, .. } => {
                        format!(", without {}", self.world.state.nodes[node].node.name)
                    }
                    _ => String::new(),
                };
                format!("{} goes on with {keeps} pods{without}", self.job(*job))
            }
            Fact::HoldSet {
                scope, mode, by, ..
            } => {
                let verb = match mode {
                    HoldMode::Hold => "held",
                    HoldMode::Drain => "drained",
                };
                format!("{} {verb} by {by}", self.of_scope(scope))
            }
            Fact::HoldLifted { scope, by, .. } => {
                format!("{} released by {by}", self.of_scope(scope))
            }
            Fact::PolicySet { by: Some(by), .. } => format!("policy changed by {by}"),
            Fact::LimitsSet { team, by, .. } => format!("limits of {team} changed by {by}"),
            Fact::HourPassed => "hour".into(),
            // Its exit says it.
            Fact::Interrupted {
                area: Area::Program,
                ..
            } => return None,
            Fact::Interrupted {
                job,
                what,
                area,
                lost,
                ..
            } => {
                let minutes = lost / 60_000_000;
                let area: &str = area.into();
                let job = self.job(*job);
                format!("{job} interrupted by {what} ({area}): {minutes} GPU-minutes lost")
            }
            Fact::PodsLost {
                job,
                node,
                keep_until,
                ..
            } => {
                let keeps = keep_until.map_or(String::new(), |until| {
                    let seconds = until.since(self.world.now).0 / 1_000;
                    format!(", keeps the others for {seconds} s")
                });
                format!("{} is off {}{keeps}", self.job(*job), self.name(*node))
            }
            Fact::ActivityStopped { job, .. } => format!("{} does nothing", self.job(*job)),
            Fact::ActivityResumed { job, .. } => format!("{} is active", self.job(*job)),
            Fact::IdleWarned {
                job, suspend_at, ..
            } => {
                let seconds = suspend_at.since(self.world.now).0 / 1_000;
                format!("{} warned: suspended in {seconds} s", self.job(*job))
            }
            Fact::NotebookSuspended { job, by, .. } => {
                format!("{} suspended by {}", self.job(*job), rule_or(by.as_ref()))
            }
            Fact::NotebookResumed { job, by, .. } => {
                format!("{} resumed by {by}", self.job(*job))
            }
            Fact::PodSucceeded { job, rank, .. } => {
                format!("pod {rank} of {} succeeded", self.job(*job))
            }
            Fact::GangStopped { job, until, .. } => {
                let seconds = until.since(self.world.now).0 / 1_000;
                format!("{} keeps its nodes for {seconds} s", self.job(*job))
            }
            Fact::GangReplaced {
                job,
                placement,
                moved,
                ..
            } => {
                let moved = moved.iter().map(|rank| placement.pods[*rank as usize].node);
                let moved: Vec<_> = moved.map(|node| self.name(node)).collect();
                let pods = placement.pods.len();
                let job = self.job(*job);
                format!(
                    "{job} starts again, {} of {pods} on {}",
                    moved.len(),
                    moved.join(" ")
                )
            }
            Fact::TimeLimitExtended { job, limit, by, .. } => {
                let minutes = limit.0 / 60_000;
                format!("{} may run {minutes} min, says {by}", self.job(*job))
            }
            Fact::NodeHealthSet { node, health, why }
                if *health == Health::Cordoned && why.contains("in a row") =>
            {
                format!("{} cordoned: {why}", self.name(*node))
            }
            Fact::NodeHealthSet { .. } | Fact::NodeSilent { .. } | Fact::NodeHeard { .. } => {
                return None;
            }
            other => format!("{other:?}")
                .split_whitespace()
                .next()
                .unwrap_or_default()
                .to_lowercase(),
        })
    }

    fn name(&self, node: NodeId) -> String {
        self.world.state.nodes[&node].node.name.to_string()
    }

    pub(super) fn of_claim(&self, claim: &Claim) -> String {
        let victims: Vec<_> = claim
            .victims
            .iter()
            .map(|victim| {
                let keeps = victim.keeps.map(|pods| format!(" ({pods} pods stay)"));
                self.job(victim.job) + &keeps.unwrap_or_default()
            })
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

    pub(super) fn of_scope(&self, scope: &HoldScope) -> String {
        match scope {
            HoldScope::Job { job } => self.job(*job),
            HoldScope::Team { team } => format!("team {team}"),
            HoldScope::Cohort { cohort } => format!("cohort {cohort}"),
            HoldScope::Node { node } => self.world.state.nodes[node].node.name.to_string(),
            HoldScope::Domain { level, domain } => format!("{level} {domain}"),
        }
    }

    fn hold(&self, hold: &Hold) -> String {
        let minutes = self.world.now.since(hold.since).0 / 60_000;
        let why = hold.why.as_deref().unwrap_or("no word");
        let scope = self.of_scope(&hold.scope);
        format!("{scope} by {} since {minutes} min: {why}", hold.by)
    }

    pub(super) fn blocker(&self, blocker: &Blocker) -> String {
        match blocker {
            Blocker::Held(hold) => format!("held: {}", self.hold(hold)),
            Blocker::Suspended { since, by } => {
                let minutes = self.world.now.since(*since).0 / 60_000;
                format!("suspended since {minutes} min by {}", rule_or(by.as_ref()))
            }
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
            Blocker::Dependency { on, wants, ended } => {
                let wants = match wants {
                    Wants::Ok => "ok",
                    Wants::Any => "any",
                };
                let never = ended.map_or(String::new(), |end| {
                    format!(", which never comes: {end:?}").to_lowercase()
                });
                format!("after {wants} of {}{never}", self.job(*on))
            }
            Blocker::Limit { of, on } => {
                let of = match of {
                    LimitOf::Team { team } => format!("team {team}"),
                    LimitOf::Member { team, person } => format!("{person} in {team}"),
                    LimitOf::Person { person } => person.to_string(),
                };
                match on {
                    Limited::Jobs { limit, run } => {
                        format!("limit {limit} jobs of {of}: {run} run")
                    }
                    Limited::Gpus { limit, run, asks } => {
                        format!("limit {limit} GPUs of {of}: asks {asks}, {run} run")
                    }
                }
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
                held,
            } => {
                let held = held
                    .iter()
                    .map(|hold| format!(", held {}", self.hold(hold)));
                let held: String = held.collect();
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
                    "room {flavour} {at}: asks {asks_pods} pods, best {best_pods}{best}{segments}{held}"
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

/// Who suspended it.
fn rule_or(by: Option<&PersonId>) -> String {
    by.map_or("the idle rule".into(), ToString::to_string)
}
