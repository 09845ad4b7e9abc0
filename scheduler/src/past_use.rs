//! Past use, decayed: what a team was charged lately counts more than what it was charged long ago.
//!
//! GPU time of each team and flavour is kept in buckets of one hour. The use at a moment is the sum of bucket x weight of
//! its age in whole hours; the weight halves with every half-life (Slurm's `PriorityDecayHalfLife`, also 7 days by
//! default; Kueue's `usageHalfLifeTime`). The weights are a committed table of integers, so that two machines agree to
//! the bit, and reading changes nothing: there is no "decay step" that a busy scheduler takes more often than an idle one.

use crate::{FlavourId, MilliGpu, Millis, State, TeamId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// Half-lives after which a bucket is forgotten: it would count for a 256th.
const KEPT: u64 = 8;

/// Weight of a bucket that is `i` 64ths of a half-life old: 65,536 x 2^(-i/64), rounded.
const WEIGHTS: [u32; 64] = [
    65536, 64830, 64132, 63441, 62757, 62081, 61413, 60751, 60097, 59449, 58809, 58176, 57549,
    56929, 56316, 55709, 55109, 54515, 53928, 53347, 52773, 52204, 51642, 51085, 50535, 49991,
    49452, 48920, 48393, 47871, 47356, 46846, 46341, 45842, 45348, 44859, 44376, 43898, 43425,
    42958, 42495, 42037, 41584, 41136, 40693, 40255, 39821, 39392, 38968, 38548, 38133, 37722,
    37316, 36914, 36516, 36123, 35734, 35349, 34968, 34591, 34219, 33850, 33486, 33125,
];

/// What a bucket counts, in 65,536ths.
fn weight(age: u64, half_life: u64) -> u64 {
    let step = age * 64 / half_life;
    u64::from(WEIGHTS[(step % 64) as usize]) >> (step / 64).min(63)
}

/// The use of one team and flavour by the hour, in thousandths of a GPU x milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PastUse {
    /// Counted up to then.
    since: Millis,
    /// The bucket under way, of the hour of `since`.
    open: u64,
    /// The hour of the first full bucket.
    first: u64,
    /// Full buckets, one an hour, up to the one under way. Shared with copies of the state.
    full: Arc<VecDeque<u64>>,
}

impl PastUse {
    fn new(at: Millis) -> Self {
        Self {
            since: at,
            first: at.0 / Millis::HOUR.0,
            ..Self::default()
        }
    }

    /// Counts what was charged since the last time, cut at every whole hour.
    fn count(&mut self, charged: MilliGpu, at: Millis, half_life: u64) {
        while self.since.0 / Millis::HOUR.0 < at.0 / Millis::HOUR.0 {
            let hour = self.since.hour_floor() + Millis::HOUR;
            self.open += charged.0 * hour.since(self.since).0;
            let full = Arc::make_mut(&mut self.full);
            full.push_back(std::mem::take(&mut self.open));
            self.since = hour;
            // What is forgotten, and what was nothing, takes no room.
            let now = hour.0 / Millis::HOUR.0;
            while full
                .front()
                .is_some_and(|&bucket| bucket == 0 || now - self.first > KEPT * half_life)
            {
                full.pop_front();
                self.first += 1;
            }
        }
        self.open += charged.0 * at.since(self.since).0;
        self.since = self.since.max(at);
    }

    /// The decayed use at `now`, given what is charged since it was last counted.
    fn at(&self, charged: MilliGpu, now: Millis, half_life: u64) -> u128 {
        let hour = now.0 / Millis::HOUR.0;
        let full = self.full.iter().enumerate().map(|(index, &bucket)| {
            let age = hour.saturating_sub(self.first + index as u64);
            u128::from(bucket) * u128::from(weight(age, half_life))
        });
        let open =
            u128::from(self.open) + u128::from(charged.0) * u128::from(now.since(self.since).0);
        (full.sum::<u128>() + open * u128::from(WEIGHTS[0])) >> 16
    }

    /// True when there is nothing to remember.
    fn is_nothing(&self) -> bool {
        self.open == 0 && self.full.is_empty()
    }
}

/// Counts a team's use of a flavour up to `at`: before its charge changes.
pub(crate) fn count(state: &mut State, team: &TeamId, flavour: &FlavourId, at: Millis) {
    let charged = state.charged(team, flavour);
    let half_life = state.policy.half_life_hours();
    let of_team = state.past_use.entry(team.clone()).or_default();
    let of_flavour = of_team
        .entry(flavour.clone())
        .or_insert_with(|| PastUse::new(at));
    of_flavour.count(charged, at, half_life);
}

/// An hour is full: all are counted up to it, and what is nothing is forgotten.
pub(crate) fn close_hour(state: &mut State, at: Millis) {
    let half_life = state.policy.half_life_hours();
    let charged = &state.charged;
    for (team, of_team) in &mut state.past_use {
        for (flavour, past) in of_team.iter_mut() {
            let charged = charged.get(team).and_then(|of_team| of_team.get(flavour));
            past.count(charged.copied().unwrap_or_default(), at, half_life);
        }
        of_team.retain(|_, past| !past.is_nothing());
    }
    state.past_use.retain(|_, of_team| !of_team.is_empty());
}

/// A team's decayed use of a flavour at `now`, in thousandths of a GPU x milliseconds.
pub fn decayed_use(state: &State, team: &TeamId, flavour: &FlavourId, now: Millis) -> u128 {
    let of_team = state.past_use.get(team);
    let past = of_team.and_then(|of_team| of_team.get(flavour));
    past.map_or(0, |past| {
        let charged = state.charged(team, flavour);
        past.at(charged, now, state.policy.half_life_hours())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK: u64 = 168;

    #[test]
    fn the_table_halves_with_every_half_life() {
        for age in [0, 1, 5, 100, 167] {
            let (now, later) = (weight(age, WEEK), weight(age + WEEK, WEEK));
            assert_eq!(later, now / 2, "{age} hours");
        }
        assert!(WEIGHTS.is_sorted_by(|a, b| a > b));
        assert_eq!(weight(20 * WEEK, WEEK), 0);
    }

    #[test]
    fn an_hour_of_eight_gpus_counts_half_after_a_week() {
        let eight = MilliGpu::gpus(8);
        let mut past = PastUse::new(Millis(0));
        past.count(eight, Millis::HOUR, WEEK);
        let then = past.at(MilliGpu::ZERO, Millis::HOUR, WEEK);
        let week = past.at(MilliGpu::ZERO, Millis::hours(WEEK), WEEK);
        assert_eq!(week, eight.over(Millis::HOUR).0 / 2);
        assert!(then > week);
    }

    #[test]
    fn counting_often_or_seldom_is_the_same_and_so_is_reading() {
        let (mut often, mut seldom) = (PastUse::new(Millis(5)), PastUse::new(Millis(5)));
        for minute in 0..(50 * 60) {
            often.count(MilliGpu(1_500), Millis::minutes(minute), WEEK);
            often.at(MilliGpu(1_500), Millis::minutes(minute), WEEK);
        }
        seldom.count(MilliGpu(1_500), Millis::minutes(50 * 60 - 1), WEEK);
        assert_eq!(often, seldom);
    }

    #[test]
    fn the_buckets_are_bounded_and_nothing_is_forgotten_in_the_end() {
        let mut past = PastUse::new(Millis(0));
        past.count(MilliGpu(1), Millis::hours(100 * WEEK), WEEK);
        assert!(past.full.len() as u64 <= KEPT * WEEK + 1);
        past.count(MilliGpu::ZERO, Millis::hours(200 * WEEK), WEEK);
        assert!(past.is_nothing());
    }
}
