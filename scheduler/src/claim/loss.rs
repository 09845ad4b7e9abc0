//! What a victim loses, and what a claim costs three ways.
//!
//! Loss = GPUs x (unsaved work at the stop + save + restart). Unsaved is what was done since the last durable checkpoint
//! of this attempt; of a job that reports none, its run time, and at most `policy_age`: silence is no shelter, reporting
//! no punishment. Restart is how long this attempt took from its admission until all pods were up. Saves that happen
//! together share the storage's bandwidth: each is done when its share of it is.

use super::{Claim, Price, Way};
use crate::{Cost, FlavourId, Job, MilliGpu, MilliGpuMs, Millis, Phase, Policy, State};

/// What taking one job costs, in its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    pub gpus: MilliGpu,
    /// Work done since the last durable checkpoint.
    pub unsaved: Millis,
    /// How long its save takes by itself; `None` = there is none within its grace.
    pub save: Option<Millis>,
    /// When that save begins: now, or at its next period.
    pub saves_from: Millis,
    /// The end of its grace.
    pub until: Millis,
    /// When its next periodic save is durable, if it has any.
    pub next_save: Option<(Millis, Millis)>,
    pub restart: Millis,
}

impl Loss {
    /// Of a job that would be taken now.
    pub(crate) fn of(job: &Job, policy: &Policy, now: Millis) -> Self {
        let started = job
            .allocation
            .as_ref()
            .and_then(|allocation| allocation.started)
            .filter(|_| job.phase == Phase::Running);
        let gpus = (job.allocation.as_ref()).map_or(MilliGpu::ZERO, |allocation| allocation.gpus);
        let nothing = Self {
            gpus,
            unsaved: Millis(0),
            save: None,
            saves_from: now,
            until: now,
            next_save: None,
            restart: Millis(0),
        };
        let Some((started, allocation)) = started.zip(job.allocation.as_ref()) else {
            return nothing;
        };
        let saved = job.checkpoint.map(|saved| saved.at);
        let durable = saved.map_or(started, |saved| saved.max(started));
        let silent = job.checkpoint.is_none();
        let unsaved = match (silent, now.since(durable)) {
            (true, ran) => ran.min(policy.policy_age),
            (false, unsaved) => unsaved,
        };
        let with_it = Self {
            unsaved,
            restart: started.since(allocation.admitted),
            ..nothing
        };
        let Some(contract) = job.spec.checkpoint else {
            return with_it;
        };
        let grace = policy
            .grace
            .max(contract.save + contract.save)
            .min(policy.grace_cap);
        let last = saved
            .filter(|saved| *saved >= started)
            .map_or(started, |saved| {
                Millis(saved.0.saturating_sub(contract.save.0))
            });
        let next = (last + contract.period).max(now);
        let saves_from = match (allocation.saving, contract.on_demand) {
            (Some(began), _) => began,
            (None, true) => now,
            (None, false) => next,
        };
        let until = now + grace;
        let fits = saves_from + contract.save <= until;
        Self {
            save: fits.then_some(contract.save),
            saves_from: saves_from.max(now),
            until: if fits { until } else { now },
            next_save: Some((allocation.saving.unwrap_or(next).max(now), contract.save)),
            ..with_it
        }
    }

    /// Of an elastic gang that would give up so much of it: it goes on, so nothing is lost but the time of a save.
    pub(crate) fn of_part(&self, gpus: MilliGpu) -> Self {
        Self {
            gpus,
            unsaved: Millis(0),
            restart: Millis(0),
            ..*self
        }
    }

    /// Killed at once.
    fn now(&self) -> MilliGpuMs {
        self.gpus.over(self.unsaved + self.restart)
    }

    /// Saved first, if it can be, alone on the storage.
    pub(crate) fn alone(&self) -> MilliGpuMs {
        match self.save {
            Some(save) => self.after(save),
            None => self.now(),
        }
    }

    fn after(&self, save: Millis) -> MilliGpuMs {
        self.gpus.over(save + self.restart)
    }
}

/// What each of a set loses, in the set's order, when all of them go together.
pub(crate) fn together(set: &[&Loss]) -> Vec<MilliGpuMs> {
    let done = shared(set.iter().map(|loss| loss.save));
    set.iter()
        .zip(done)
        .map(|(loss, save)| match save {
            Some(save) if loss.saves_from + save <= loss.until => loss.after(save),
            // Not done when its grace is over: the time of the save is lost besides.
            Some(_) => loss.now() + loss.gpus.over(loss.until.since(loss.saves_from)),
            None => loss.now(),
        })
        .collect()
}

/// How long saves take that begin together on one storage, each with an equal part of it: those that alone would take
/// s1 <= s2 <= ... are done after s1 x n, then (s2 - s1) x (n - 1) later, and so on.
fn shared(saves: impl Iterator<Item = Option<Millis>>) -> Vec<Option<Millis>> {
    let saves: Vec<_> = saves.collect();
    let mut order: Vec<(Millis, usize)> = saves
        .iter()
        .enumerate()
        .filter_map(|(index, save)| Some(((*save)?, index)))
        .collect();
    order.sort_unstable();
    let mut done = vec![None; saves.len()];
    let (mut before, mut passed) = (Millis(0), Millis(0));
    for (rank, &(alone, index)) in order.iter().enumerate() {
        let beside = (order.len() - rank) as u64;
        passed += Millis(alone.since(before).0 * beside);
        before = alone;
        done[index] = Some(passed);
    }
    done
}

/// The price of taking a set now.
pub(crate) fn price(state: &State, flavour: &FlavourId, set: &[&Loss], now: Millis) -> Price {
    let way = |lost: MilliGpuMs, by: Option<Millis>| Way {
        lost,
        by,
        cents: cents(state, flavour, lost, now),
    };
    let killed = set.iter().map(|loss| loss.now()).sum();
    let done = shared(set.iter().map(|loss| loss.save));
    let saved = set.iter().zip(&done);
    let saved = saved.map(|(loss, save)| save.map_or(now, |save| loss.saves_from + save));
    let next = set.iter().map(|loss| loss.next_save);
    let waited = set.iter().map(|loss| match loss.next_save {
        Some((_, save)) => loss.after(save),
        // Nothing to wait for: whenever it goes, what it has done is lost.
        None => loss.now(),
    });
    let last = next
        .map(|next| next.map(|(from, save)| from + save))
        .try_fold(now, |last, next| Some(last.max(next?)));
    Price {
        now: way(killed, Some(now)),
        after_save: way(together(set).into_iter().sum(), saved.max()),
        next_save: way(waited.sum(), last),
    }
}

/// What a claim costs now, anew: the price, and what each victim loses, in the claim's order. A request is read for
/// minutes, and what killing costs grows meanwhile.
///
/// `None` when a victim is not there any more as it was asked for: the next cycle plans the claim anew.
pub fn price_now(state: &State, claim: &Claim, now: Millis) -> Option<(Price, Vec<MilliGpuMs>)> {
    let losses = claim.victims.iter().map(|victim| {
        let job = state.jobs.get(&victim.job)?;
        let same = job.attempt == victim.attempt && job.is_charged();
        let whole = Loss::of(job, &state.policy, now);
        same.then(|| match victim.keeps {
            Some(_) => whole.of_part(victim.gpus),
            None => whole,
        })
    });
    let losses: Vec<Loss> = losses.collect::<Option<_>>()?;
    let losses: Vec<&Loss> = losses.iter().collect();
    let flavour = claim.placement.flavour.as_ref()?;
    Some((price(state, flavour, &losses, now), together(&losses)))
}

/// What moving a job elsewhere costs, in GPU-time and in money: it saves first if it can.
pub(crate) fn loss_of_move(
    state: &State,
    job: &Job,
    now: Millis,
) -> (MilliGpuMs, Option<crate::Cents>) {
    let lost = Loss::of(job, &state.policy, now).alone();
    let placement = job.allocation.as_ref().map(|has| &has.placement);
    let flavour = placement.and_then(|placement| placement.flavour.as_ref());
    (
        lost,
        flavour.and_then(|flavour| cents(state, flavour, lost, now)),
    )
}

/// In money: as borrowed time of the flavour, by the card in force.
fn cents(
    state: &State,
    flavour: &FlavourId,
    lost: MilliGpuMs,
    now: Millis,
) -> Option<crate::Cents> {
    let cards = state.rate_cards.iter().filter(|card| card.from <= now);
    let card = cards.max_by_key(|card| card.from)?;
    let micros = *card.borrowed_micros.get(flavour)?;
    let cost = Cost(lost.0 as i128 * i128::from(micros));
    Some(cost.to_cents())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saves_that_happen_together_share_the_storage() {
        let seconds = |all: &[u64]| -> Vec<Option<Millis>> {
            all.iter().map(|n| Some(Millis::seconds(*n))).collect()
        };
        assert_eq!(shared(seconds(&[50]).into_iter()), seconds(&[50]));
        assert_eq!(shared(seconds(&[50, 50]).into_iter()), seconds(&[100, 100]));
        // Three share until 10 s of each are done, at 30 s; two until 20 s of each, at 50 s; then one is alone.
        assert_eq!(
            shared(seconds(&[30, 10, 20]).into_iter()),
            seconds(&[60, 30, 50])
        );
        let one_without = [None, Some(Millis::seconds(50))];
        assert_eq!(
            shared(one_without.into_iter()),
            [None, Some(Millis::seconds(50))]
        );
    }
}
