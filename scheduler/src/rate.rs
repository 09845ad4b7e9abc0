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
pub const COST_PER_CENT: i128 = 10_000 * 3_600_000_000;

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

/// Rounds parts so that they add up to `total`: each down, then one more to those with the largest remainder (the
/// earlier one among equals). Where the total lies further off, it goes on in the same order.
pub fn spread(parts: &[i128], unit: i128, total: i64) -> Vec<i64> {
    let mut units: Vec<i64> = parts
        .iter()
        .map(|part| part.div_euclid(unit) as i64)
        .collect();
    let mut order: Vec<usize> = (0..parts.len()).filter(|&part| parts[part] != 0).collect();
    order.sort_by_key(|&part| (std::cmp::Reverse(parts[part].rem_euclid(unit)), part));
    let mut missing = total - units.iter().sum::<i64>();
    let step = missing.signum();
    if step < 0 {
        order.reverse();
    }
    while missing != 0 && !order.is_empty() {
        for &part in order.iter().take(missing.unsigned_abs() as usize) {
            units[part] += step;
            missing -= step;
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entitlement, MilliGpu, UnitKind, UsagePhase};
    use proptest::prelude::*;

    fn line(entitlement: Entitlement, phase: UsagePhase, gpus: u64, span: Millis) -> UsageLine {
        UsageLine {
            job: crate::JobId(1),
            attempt: 1,
            team: "fraud-ml".into(),
            project: "p".into(),
            owner: "ada".into(),
            flavour: Some("h100".into()),
            entitlement,
            unit: UnitKind::Card,
            phase,
            from: Millis::HOUR,
            to: Millis::HOUR + span,
            gpus: MilliGpu::gpus(gpus),
            cpu_milli: 0,
            nodes: 4,
        }
    }

    fn card(id: &str, from: Millis, own: u64, borrowed: u64) -> RateCard {
        let prices = |micros| BTreeMap::from([("h100".into(), micros)]);
        RateCard {
            id: id.into(),
            from,
            currency: "EUR".into(),
            own_micros: prices(own),
            borrowed_micros: prices(borrowed),
        }
    }

    /// 2.50 an hour of own use, 1.00 of borrowed; twice as much from the second hour on.
    fn check(line: &UsageLine, cents: Option<i64>) {
        let cards = [
            card("old", Millis(0), 1, 1),
            card("list", Millis::HOUR, 2_500_000, 1_000_000),
            card("dear", Millis::hours(2), 5_000_000, 2_000_000),
        ];
        assert_eq!(
            Cost::of(line, &cards).map(Cost::to_cents),
            cents.map(Cents),
            "{line:?}"
        );
    }

    #[test]
    fn own_and_borrowed_use_have_their_prices() {
        use Entitlement::{Borrowed, Own};
        use UsagePhase::{FailedLaunch, Recover, Run, Save};
        check(&line(Own, Run, 32, Millis::HOUR), Some(8_000));
        check(&line(Borrowed, Save, 32, Millis::HOUR), Some(3_200));
        check(&line(Own, Recover, 1, Millis::SECOND), Some(0));
        check(&line(Own, FailedLaunch, 32, Millis::HOUR), Some(0));
        check(
            &UsageLine {
                flavour: Some("b200".into()),
                ..line(Own, Run, 1, Millis::HOUR)
            },
            None,
        );
    }

    #[test]
    fn a_cent_is_rounded_half_away_from_zero() {
        let half = Cost(COST_PER_CENT / 2);
        assert_eq!(
            (half.to_cents(), Cost(half.0 - 1).to_cents()),
            (Cents(1), Cents(0))
        );
        assert_eq!(
            (Cost(-half.0).to_cents(), Cost(1 - half.0).to_cents()),
            (Cents(-1), Cents(0))
        );
    }

    proptest! {
        #[test]
        fn rounded_lines_add_up_to_the_rounded_total(costs in prop::collection::vec(-1_000_000_000_000_000..1_000_000_000_000_000_i128, 0..40)) {
            let costs: Vec<_> = costs.into_iter().map(Cost).collect();
            let total = costs.iter().copied().sum::<Cost>().to_cents();
            let parts: Vec<_> = costs.iter().map(|cost| cost.0).collect();
            let lines = spread(&parts, COST_PER_CENT, total.0);
            prop_assert_eq!(lines.iter().sum::<i64>(), if parts.iter().any(|part| *part != 0) { total.0 } else { 0 });
            for (line, part) in lines.iter().zip(&parts) {
                prop_assert!((i128::from(*line) * COST_PER_CENT - part).abs() <= COST_PER_CENT, "within one cent");
            }
        }
    }
}
