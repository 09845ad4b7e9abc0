//! Policies and limits in scenarios: set up with, and changed by people.

use super::Script;
use super::words::{field, limits, millis, number};
use scheduler::*;

impl Script<'_> {
    /// What the fleet is set up with.
    pub(super) fn policy(&mut self, setting: &str) {
        let mut policy = self.world.state.policy.clone();
        match setting.split_once('=') {
            Some(("recover_hold", span)) => policy.recover_hold = millis(span),
            Some(("stall_after", span)) => policy.stall_after = millis(span),
            Some(("notebook_idle", span)) => policy.notebook_idle = millis(span),
            Some(("count-lost-work", _)) => policy.count_lost_work = true,
            Some(("lemon-people", people)) => policy.lemon_people = number(people) as u32,
            Some(("use_order", "leads")) => policy.use_order = UseOrder::Leads,
            Some(("reservations", most)) => policy.reservations = number(most) as u32,
            Some(("person-running", most)) => {
                policy.person_limits.running_jobs = Some(number(most) as u32);
            }
            Some(("person-waiting", most)) => {
                policy.person_limits.waiting_jobs = Some(number(most) as u32);
            }
            Some(("within-team", _)) => policy.within_team = WithinTeam::LowerPriority,
            Some(("fair-reclaim", _)) => policy.fair_reclaim = false,
            _ => panic!("scenario {}: no such policy: {setting}", self.title),
        }
        self.world.set(Configure::Policy(policy));
    }

    /// `change grace=8m seen=0`: one policy, by somebody who has looked at that version of it.
    pub(super) fn change(&mut self, setting: &str, fields: &[&str]) {
        let (name, to) = setting.split_once('=').expect("a policy and its value");
        let allowed = policy_row(name).map(|row| row.allowed);
        let to = match allowed {
            Some(Allowed::Count(..)) => Setting::Count(number(to)),
            Some(Allowed::Switch) => Setting::Switch(to == "yes"),
            Some(Allowed::Words(_)) => Setting::Word(to.to_owned()),
            Some(Allowed::Jobs(_)) => Setting::Jobs(to.parse().ok()),
            Some(Allowed::Gpus(_)) => Setting::Gpus(to.parse().ok().map(MilliGpu::gpus)),
            Some(Allowed::Span(..)) | None => Setting::Span(millis(to)),
        };
        let command = Command::SetPolicy {
            name: name.to_owned(),
            to,
            seen: seen(fields),
            by: "bea".into(),
            why: Some("a review".into()),
        };
        let answer = self.world.command(command);
        self.tell(answer);
    }

    /// `limit team a running=1 seen=0`: all limits of a team; those that are left out are none.
    pub(super) fn limit(&mut self, team: &str, fields: &[&str]) {
        let command = Command::SetLimits {
            team: team.into(),
            limits: TeamLimits {
                team: limits(fields, ""),
                member: limits(fields, "person-"),
            },
            seen: seen(fields),
            by: "bea".into(),
            why: Some("a review".into()),
        };
        let answer = self.world.command(command);
        self.tell(answer);
    }
}

fn seen(fields: &[&str]) -> u64 {
    field(fields, "seen").map_or(0, number)
}
