//! Prices and exact money. Nothing is rounded before the bill line.

use crate::{FlavourId, Millis, UsageLine};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// Prices from a point in time on. The card in force at a line's start prices the whole line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateCard {
    /// Its name: `2026-list`.
    pub id: String,
    /// From when; a whole hour.
    pub from: Millis,
    /// ISO 4217 code.
    pub currency: String,
    /// Millionths of the currency for one GPU-hour of own use.
    pub own_micros: BTreeMap<FlavourId, u64>,
    /// Millionths of the currency for one GPU-hour of borrowed use.
    pub borrowed_micros: BTreeMap<FlavourId, u64>,
}

/// Exact money: millionths of the currency x thousandths of a GPU x milliseconds, before division by the
/// 3,600,000,000 of one GPU-hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cost(pub i128);

/// Hundredths of the currency, as on a bill line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cents(pub i64);

/// [`Cost`] units in one hundredth of the currency: 10,000 micros x 3,600,000,000.
const COST_PER_CENT: i128 = 10_000 * 3_600_000_000;

impl Cost {
    /// What a line costs under the card in force at its start; `None` without a card or without a price for its flavour.
    pub fn of(line: &UsageLine, cards: &[RateCard]) -> Option<Self> {
        let card = cards
            .iter()
            .filter(|card| card.from <= line.from)
            .max_by_key(|card| card.from)?;
        let prices = match line.entitlement {
            crate::Entitlement::Own => &card.own_micros,
            crate::Entitlement::Borrowed => &card.borrowed_micros,
        };
        if !line.phase.is_billed() {
            return Some(Self(0));
        }
        let micros = *prices.get(line.flavour.as_ref()?)?;
        Some(Self(line.held().0 as i128 * i128::from(micros)))
    }

    /// Rounded half away from zero to hundredths.
    pub fn to_cents(self) -> Cents {
        let half = COST_PER_CENT / 2 * self.0.signum();
        Cents(((self.0 + half) / COST_PER_CENT) as i64)
    }
}
impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// Rounds lines so that they add up to the rounded total: each down to a whole hundredth, then one more to those with
/// the largest remainder (the earlier line first among equals) until the sum is the total's.
pub fn spread_to_cents(costs: &[Cost]) -> (Vec<Cents>, Cents) {
    let total = costs.iter().copied().sum::<Cost>().to_cents();
    let mut cents: Vec<i64> = costs
        .iter()
        .map(|cost| cost.0.div_euclid(COST_PER_CENT) as i64)
        .collect();
    let missing = total.0 - cents.iter().sum::<i64>();
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by_key(|&line| {
        (
            std::cmp::Reverse(costs[line].0.rem_euclid(COST_PER_CENT)),
            line,
        )
    });
    // The remainders add up to `missing` whole hundredths give or take the total's own rounding, so it is in 0..=lines.
    for &line in order.iter().take(missing.max(0) as usize) {
        cents[line] += 1;
    }
    (cents.into_iter().map(Cents).collect(), total)
}
