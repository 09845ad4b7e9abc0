//! Reclaims: priced, with both sides by name, and what became of them in one sentence.

use super::events::withdrawal_text;
use crate::engine::record::{job_text, place_text};
use crate::period::instant;
use crate::store::ClaimRecord;
use crate::store::claims::Brief;
use contract::{
    Gpus, ReclaimAlternative, ReclaimJob, ReclaimNote, ReclaimPrice, ReclaimRights, ReclaimStage,
    ReclaimVictim, ReclaimView, ReclaimWay, gpu_count, gpu_hours, money,
};
use scheduler::{
    Basis, Claim, JobId, MilliGpu, MilliGpuMs, Millis, Price, Refusal, Stage, State, Victim, Way,
    price_now,
};
use std::collections::{BTreeMap, BTreeSet};

/// What only the published state knows of a claim that is not over.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveClaim {
    /// What it costs now, and what each victim loses; only while it is not decided.
    quote: Option<(Price, Vec<MilliGpuMs>)>,
    /// Its victims as they run.
    victims: BTreeMap<JobId, Running>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Running {
    saved: Option<Millis>,
    save: Option<Millis>,
    started: Option<Millis>,
}

impl LiveClaim {
    /// Of a claim in the state.
    pub(crate) fn of(state: &State, claim: &Claim, now: Millis) -> Self {
        let victims = claim.victims.iter().filter_map(|victim| {
            let job = state.jobs.get(&victim.job)?;
            let running = Running {
                saved: job.checkpoint.map(|saved| saved.at),
                save: job.spec.checkpoint.map(|contract| contract.save),
                started: (job.attempt == victim.attempt)
                    .then_some(job.allocation.as_ref())
                    .flatten()
                    .and_then(|allocation| allocation.started),
            };
            Some((victim.job, running))
        });
        Self {
            quote: match claim.stage {
                Stage::Requested | Stage::Approved => price_now(state, claim, now),
                Stage::Made => None,
            },
            victims: victims.collect(),
        }
    }
}

/// The currency of the card in force.
pub(crate) fn currency(state: &State, now: Millis) -> String {
    let cards = state.rate_cards.iter().filter(|card| card.from <= now);
    let card = cards.max_by_key(|card| card.from);
    card.map_or_else(|| "USD".to_owned(), |card| card.currency.clone())
}

/// Every job that a claim names.
pub(crate) fn jobs_of(record: &ClaimRecord) -> impl Iterator<Item = JobId> {
    let claim = &record.claim;
    let victims = claim.victims.iter().map(|victim| victim.job);
    let others = claim.alternatives.iter().flat_map(|other| &other.victims);
    std::iter::once(claim.claimant)
        .chain(victims)
        .chain(others.copied())
}

/// What a view is told from.
pub(crate) struct Told<'a> {
    /// Now.
    pub(crate) now: Millis,
    /// Nodes and levels, for names.
    pub(crate) names: &'a State,
    /// Of the card in force.
    pub(crate) currency: &'a str,
    /// The jobs that the claims name.
    pub(crate) briefs: &'a BTreeMap<JobId, Brief>,
    /// Teams whose jobs the reader may open; `None` = all.
    pub(crate) visible: Option<&'a [String]>,
}

impl Told<'_> {
    /// A reclaim, whole.
    pub(crate) fn view(
        &self,
        record: &ClaimRecord,
        live: Option<&LiveClaim>,
        may: ReclaimRights,
    ) -> ReclaimView {
        let claim = &record.claim;
        let quote = live.and_then(|live| live.quote.as_ref());
        let victims = claim.victims.iter().enumerate().map(|(index, victim)| {
            let lost = quote.and_then(|(_, lost)| lost.get(index));
            let running = live.and_then(|live| live.victims.get(&victim.job));
            self.victim(
                record,
                victim,
                *lost.unwrap_or(&victim.lost),
                running.copied(),
            )
        });
        let losers: BTreeSet<&str> = (claim.victims.iter())
            .map(|victim| victim.team.as_str())
            .collect();
        let claimant = self.briefs.get(&claim.claimant);
        let (price, priced) = match quote {
            Some((price, _)) => (price, self.now),
            None => (&claim.price, claim.at),
        };
        let asked = record.stage == ReclaimStage::Requested;
        let answered = record.answered.as_ref();
        ReclaimView {
            id: claim.id.0,
            stage: record.stage,
            now: instant(self.now),
            claimant: self.party(claim.claimant, claim.team.as_str()),
            claimant_submitted: claimant.map(|brief| instant(brief.submitted())),
            right: right(&claim.basis),
            place: place_text(&claim.placement, self.names),
            taken: Gpus(claim.taken()),
            victims: victims.collect(),
            losing_teams: losers.into_iter().map(str::to_owned).collect(),
            awaits: claim.awaits.iter().map(|job| job.0).collect(),
            price: self.price(price, priced, claimant),
            alternatives: self.alternatives(claim),
            requested: instant(record.asked),
            deadline: claim.deadline.filter(|_| asked).map(instant),
            at_deadline: asked.then(|| at_deadline(claim).to_owned()),
            deferred_by: claim.deferred_by.as_ref().map(ToString::to_string),
            proposed_by: claim.proposed_by.as_ref().map(ToString::to_string),
            decided: answered.map(|answer| instant(answer.at)),
            decided_by: answered
                .and_then(|answer| answer.by.as_ref())
                .map(ToString::to_string),
            reason: answered.and_then(|answer| answer.why.clone()),
            ended: record.ended.map(instant),
            outcome: outcome(record, self.names),
            may,
        }
    }

    /// A job of one of the two sides: whoever sees the reclaim reads its name and its owner, to talk to them.
    fn party(&self, id: JobId, team: &str) -> ReclaimJob {
        let brief = self.briefs.get(&id);
        ReclaimJob {
            id: id.0,
            name: brief.map(|brief| brief.name.clone()),
            team: team.to_owned(),
            owner: brief.map(|brief| brief.owner.clone()),
            gpus: Gpus(MilliGpu(brief.map_or(0, Brief::gpus_milli))),
            visible: self.opens(team),
        }
    }

    fn opens(&self, team: &str) -> bool {
        let visible = self.visible;
        visible.is_none_or(|teams| teams.iter().any(|own| own == team))
    }

    fn victim(
        &self,
        record: &ClaimRecord,
        victim: &Victim,
        lost: MilliGpuMs,
        running: Option<Running>,
    ) -> ReclaimVictim {
        let running = running.unwrap_or_default();
        ReclaimVictim {
            job: ReclaimJob {
                gpus: Gpus(victim.gpus),
                ..self.party(victim.job, victim.team.as_str())
            },
            last_checkpoint: running.saved.map(instant),
            save_ms: running.save.map(|save| save.0),
            started: running.started.map(instant),
            lost_gpu_hours: gpu_hours(lost),
            keeps_pods: victim.keeps,
            until: record.made.map(|_| instant(victim.until)),
        }
    }

    fn price(&self, price: &Price, at: Millis, claimant: Option<&Brief>) -> ReclaimPrice {
        let way = |way: &Way| ReclaimWay {
            lost_gpu_hours: gpu_hours(way.lost),
            amount: way.cents.map(money),
            by: way.by.map(instant),
            wait_ms: way.by.map(|by| by.since(at).0),
        };
        let gpus = MilliGpu(claimant.map_or(0, Brief::gpus_milli));
        let idle = price.next_save.by.map(|by| gpus.over(by.since(at)));
        ReclaimPrice {
            at: instant(at),
            now: way(&price.now),
            after_save: way(&price.after_save),
            next_save: way(&price.next_save),
            idle_gpu_hours: idle.map(gpu_hours),
            currency: self.currency.to_owned(),
        }
    }

    fn alternatives(&self, claim: &Claim) -> Vec<ReclaimAlternative> {
        let own: BTreeSet<JobId> = claim.victims.iter().map(|victim| victim.job).collect();
        let job = |id: &JobId| {
            let brief = self.briefs.get(id);
            let team = brief.map_or("", |brief| brief.team.as_str());
            let party = self.party(*id, team);
            // Those who are not asked are not parties: their jobs are shown as the map shows them.
            match party.visible || own.contains(id) {
                true => party,
                false => ReclaimJob {
                    name: None,
                    owner: None,
                    ..party
                },
            }
        };
        let others = claim.alternatives.iter().map(|other| ReclaimAlternative {
            domain: other.domain.as_ref().map(ToString::to_string),
            jobs: other.victims.iter().map(job).collect(),
            lost_gpu_hours: gpu_hours(other.lost),
        });
        others.collect()
    }
}

/// By what right, in words.
fn right(basis: &Basis) -> String {
    match basis {
        Basis::Owner { cohort: None, .. } => "inside its team's own quota".to_owned(),
        Basis::Owner {
            cohort: Some(cohort),
            ..
        } => format!("inside what cohort {cohort} has of its own"),
        Basis::Priority => "ahead of work of lower priority in the same team".to_owned(),
        Basis::FairShare => "by fair share: its team borrows less than theirs".to_owned(),
    }
}

/// What the deadline does by itself.
fn at_deadline(claim: &Claim) -> &'static str {
    match claim.is_owners() {
        true => "approved",
        false => "withdrawn",
    }
}

/// Who said yes, in words: ` by admin`, ` by its deadline`; nothing when nobody was asked.
fn by_whom(record: &ClaimRecord) -> String {
    match &record.answered {
        None => String::new(),
        Some(answer) => match &answer.by {
            Some(by) => format!(" by {by}"),
            None => " by its deadline".to_owned(),
        },
    }
}

/// What became of it so far.
fn outcome(record: &ClaimRecord, names: &State) -> String {
    let (claim, by) = (&record.claim, by_whom(record));
    let yes = match by.is_empty() {
        true => "nobody had to be asked".to_owned(),
        false => format!("approved{by}"),
    };
    let taken = gpu_count(claim.taken());
    match record.stage {
        ReclaimStage::Requested => {
            format!(
                "waits for an answer; its deadline has it {}",
                at_deadline(claim)
            )
        }
        ReclaimStage::Approved => format!("{yes}: it is planned anew in a moment"),
        ReclaimStage::Made => format!("{yes}: {taken} are being given back"),
        ReclaimStage::Started if record.made.is_none() => {
            "its job found room without anybody going".to_owned()
        }
        ReclaimStage::Started => format!("{yes}: {taken} were given back, and its job started"),
        ReclaimStage::Declined => match record.answered.as_ref().and_then(|no| no.why.as_ref()) {
            Some(why) => format!("declined{by}: {why}"),
            None => format!("declined{by}"),
        },
        ReclaimStage::Withdrawn => match &record.withdrawn {
            Some(why) => format!("withdrawn: {}", withdrawal_text(why, names)),
            None => "withdrawn".to_owned(),
        },
    }
}

/// A moment as people read it in an answer to a program: `2026-11-30 13:05 UTC`.
fn moment(at: Millis) -> String {
    instant(at).strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// What an answer meets that comes after another one: who was first, what they said, and what is left to do.
pub(crate) fn too_late(record: &ClaimRecord, refusal: &Refusal, names: &State) -> String {
    let id = record.id();
    let since = |at: Option<Millis>| at.map_or(String::new(), |at| format!(" at {}", moment(at)));
    let (by, answered) = (
        by_whom(record),
        since(record.answered.as_ref().map(|answer| answer.at)),
    );
    match record.stage {
        ReclaimStage::Requested => match (refusal, &record.claim.deferred_by) {
            (Refusal::AlreadyDeferred(_), Some(by)) => {
                let until = record.claim.deadline.map_or(String::new(), moment);
                format!(
                    "reclaim {id} was put off once already, by {by}, until {until}: propose other jobs, or let the \
                     deadline decide"
                )
            }
            _ => refusal.to_string(),
        },
        ReclaimStage::Approved | ReclaimStage::Made | ReclaimStage::Started
            if record.answered.is_some() =>
        {
            format!("reclaim {id} was approved{by}{answered}: nothing is left to decide")
        }
        ReclaimStage::Declined => {
            let why = record.answered.as_ref().and_then(|no| no.why.as_ref());
            let why = why.map_or(String::new(), |why| format!(" ({why})"));
            format!(
                "reclaim {id} was declined{by}{answered}{why}: its job may ask again later, under a new number"
            )
        }
        _ => format!(
            "reclaim {id} is decided{}: {}",
            since(record.ended.or(record.made)),
            outcome(record, names)
        ),
    }
}

/// What a job's page says of the open claim that it asks by or would stop for.
pub(crate) fn note(state: &State, job: JobId) -> Option<ReclaimNote> {
    let is_victim = |claim: &&Claim| claim.victims.iter().any(|victim| victim.job == job);
    let claims = || state.claims.values();
    let (claim, loses) = match claims().find(|claim| claim.claimant == job) {
        Some(claim) => (claim, false),
        None => (claims().find(is_victim)?, true),
    };
    let stage = match claim.stage {
        Stage::Requested => ReclaimStage::Requested,
        Stage::Approved => ReclaimStage::Approved,
        Stage::Made => ReclaimStage::Made,
    };
    let whose = job_text(state, claim.claimant);
    let mine = claim.victims.iter().find(|victim| victim.job == job);
    let gpus = gpu_count(mine.map_or(claim.taken(), |victim| victim.gpus));
    let text = match (loses, claim.stage) {
        (true, Stage::Requested) => format!(
            "{whose} asks for its {gpus}: it would save, stop and wait again. The deadline has it {}",
            at_deadline(claim)
        ),
        (true, _) => format!("it makes room for {whose}: {gpus}"),
        (false, Stage::Requested) => format!(
            "it asks others for {gpus}. The deadline has it {}",
            at_deadline(claim)
        ),
        (false, _) => format!("{gpus} are being given back for it"),
    };
    Some(ReclaimNote {
        id: claim.id.0,
        stage,
        loses,
        text,
        deadline: claim
            .deadline
            .filter(|_| claim.stage == Stage::Requested)
            .map(instant),
    })
}
