//! From what happened to the rows that are written: entries, lists, usage.

use super::claims::OpenClaims;
use super::record::{self, Details};
use crate::period;
use crate::store::{DayKey, Entry, Transaction};
use crate::words;
use scheduler::{Event, Fact, Job, State, UsageLine};

/// Numbers entries and usage lines, and gathers rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recorder {
    /// Number of the last entry.
    pub(crate) seq: u64,
    /// Number of the last usage line.
    pub(crate) line: u64,
    /// Claims that are not over, as they are listed.
    pub(crate) claims: OpenClaims,
}

impl Recorder {
    /// Notes an event that has just been folded into `state`, and the usage lines that it closed. `before` is the job of
    /// an end, as it was before it.
    pub(crate) fn note(
        &mut self,
        state: &State,
        event: &Event,
        lines: Vec<UsageLine>,
        before: Option<&Job>,
        write: &mut Transaction,
    ) {
        self.seq += 1;
        for line in lines {
            self.line += 1;
            *write.days.entry(day_key(&line, state)).or_default() += line.held().0 as i64;
            write.lines.push((self.line, line));
        }
        note_job(state, event, before, write);
        self.claims.note(event, write);
        write.entries.push(Entry {
            seq: self.seq,
            event: event.clone(),
        });
    }
}

fn note_job(state: &State, event: &Event, before: Option<&Job>, write: &mut Transaction) {
    let Some(id) = event.fact.job() else {
        return;
    };
    let details = match &event.fact {
        Fact::CheckpointStarted { .. }
        | Fact::CheckpointSaved { .. }
        | Fact::StepsStopped { .. }
        | Fact::StepsResumed { .. }
        | Fact::ActivityStopped { .. }
        | Fact::ActivityResumed { .. }
        | Fact::IdleWarned { .. }
        | Fact::Interrupted { .. } => return,
        Fact::JobSubmitted { .. }
        | Fact::JobAdmitted { .. }
        | Fact::GangReplaced { .. }
        | Fact::GangShrunk { .. }
        | Fact::TimeLimitExtended { .. } => Details::Write,
        _ => Details::Leave,
    };
    let row = match (&event.fact, before, state.jobs.get(&id)) {
        (Fact::JobEnded { end, cause, .. }, Some(job), _) => {
            record::of_ended(job, state, event.at, *end, cause.as_ref())
        }
        (_, _, Some(job)) => record::of_live(job, state, details),
        _ => return,
    };
    let older = write.jobs.remove(&id);
    write.jobs.insert(id, record::renew(older, row));
}

/// What a line is summed up by.
pub(crate) fn day_key(line: &UsageLine, state: &State) -> DayKey {
    let cards = state.rate_cards.iter().map(|card| card.from);
    let card = cards.filter(|from| *from <= line.from).max();
    DayKey {
        day: period::day_of(line.from),
        team: line.team.to_string(),
        job: line.job.0,
        flavour: words::flavour_of(line).to_owned(),
        entitlement: words::entitlement(line.entitlement),
        phase: words::phase(line.phase),
        card: card.map_or(-1, |card| card.0 as i64),
    }
}
