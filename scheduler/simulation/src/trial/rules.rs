//! Which of the engine's rules came up, against the code's own list: a variant that is added there is asked for here.

use scheduler::{
    Basis, Blocker, End, Event, Fact, Refusal, Report, Scope, Stage, StopCause, Waiting, Withdrawal,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use strum::VariantNames;

/// One rule: the list that it stands in, and its name there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// Events, reasons, refusals, stops, ends, grounds of claims, withdrawals.
    pub list: &'static str,
    /// As in the code.
    pub name: &'static str,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.list, self.name)
    }
}

/// How often each rule came up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen(BTreeMap<Rule, u64>);

const LISTS: [(&str, &[&str]); 10] = [
    ("event", Fact::VARIANTS),
    ("reason", Blocker::VARIANTS),
    ("maximum of a", Scope::VARIANTS),
    ("refusal", Refusal::VARIANTS),
    ("report", Report::VARIANTS),
    ("stop by", StopCause::VARIANTS),
    ("end", End::VARIANTS),
    ("claim by", Basis::VARIANTS),
    ("claim at stage", Stage::VARIANTS),
    ("withdrawal by", Withdrawal::VARIANTS),
];

impl Seen {
    /// Every rule that there is.
    pub fn all() -> BTreeSet<Rule> {
        let lists = LISTS.into_iter();
        lists
            .flat_map(|(list, names)| names.iter().map(move |&name| Rule { list, name }))
            .collect()
    }

    /// Rules that never came up.
    pub fn missing(&self) -> Vec<Rule> {
        let all = Self::all().into_iter();
        all.filter(|rule| !self.0.contains_key(rule)).collect()
    }

    /// How often each rule came up.
    pub fn counts(&self) -> impl Iterator<Item = (Rule, u64)> {
        self.0.iter().map(|(&rule, &count)| (rule, count))
    }

    /// Takes in what another life has seen.
    pub fn add(&mut self, other: &Self) {
        for (&rule, count) in &other.0 {
            *self.0.entry(rule).or_default() += count;
        }
    }

    fn note(&mut self, list: &'static str, name: &'static str) {
        *self.0.entry(Rule { list, name }).or_default() += 1;
    }

    /// Takes in what an event shows.
    pub fn event(&mut self, event: &Event) {
        self.note("event", (&event.fact).into());
        match &event.fact {
            Fact::StopRequested { cause, .. } => self.note("stop by", cause.into()),
            Fact::JobEnded { end, cause, .. } => {
                self.note("end", end.into());
                if let Some(cause) = cause {
                    self.note("stop by", cause.into());
                }
            }
            Fact::ClaimMade { claim, .. } => {
                self.note("claim by", (&claim.basis).into());
                self.note("claim at stage", (&claim.stage).into());
            }
            Fact::ClaimRequested { claim, .. } => {
                self.note("claim at stage", (&claim.stage).into());
            }
            Fact::ClaimApproved { .. } => self.note("claim at stage", (&Stage::Approved).into()),
            Fact::ClaimWithdrawn { why, .. } => self.note("withdrawal by", why.into()),
            _ => {}
        }
    }

    pub(super) fn refusal(&mut self, refusal: &Refusal) {
        self.note("refusal", refusal.into());
    }

    pub(super) fn report(&mut self, report: &Report) {
        self.note("report", report.into());
    }

    pub(super) fn waiting(&mut self, waiting: &[Waiting]) {
        for blocker in waiting.iter().flat_map(|waiting| &waiting.reason.all) {
            self.note("reason", blocker.into());
            if let Blocker::ExceedsMaximum { of, .. } = blocker {
                self.note("maximum of a", of.into());
            }
        }
    }
}
