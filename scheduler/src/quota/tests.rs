//! The vectors of the module's page, and what follows from them.

use super::*;
use crate::{Cohort, Flavour, Limits, Team};
use std::collections::BTreeSet;

const H100: &str = "h100";

/// `(name, parent, [nominal, borrowing limit, lending limit], charged)`; cohorts are charged nothing.
type Line = (
    &'static str,
    Option<&'static str>,
    [Option<u64>; 3],
    Option<u64>,
);

const NO: Option<u64> = None;

fn tree(lines: &[Line]) -> State {
    let mut state = State::default();
    state.flavours.insert(
        H100.into(),
        Flavour {
            id: H100.into(),
            title: H100.into(),
        },
    );
    for &(name, parent, [nominal, borrowing_limit, lending_limit], charged) in lines {
        let gpus = |n: u64| MilliGpu::gpus(n);
        let nominal = gpus(nominal.unwrap_or(0));
        let (borrowing_limit, lending_limit) = (borrowing_limit.map(gpus), lending_limit.map(gpus));
        let quotas = BTreeMap::from([(
            H100.into(),
            Quota {
                nominal,
                borrowing_limit,
                lending_limit,
            },
        )]);
        let parent = parent.map(CohortId::from);
        let Some(charged) = charged else {
            state.cohorts.insert(
                name.into(),
                Cohort {
                    id: name.into(),
                    parent,
                    quotas,
                    weight_milli: 1_000,
                    reclaim: crate::ReclaimMode::Auto,
                },
            );
            continue;
        };
        let team = Team {
            id: name.into(),
            cohort: parent,
            weight_milli: 1_000,
            quotas,
            limits: Limits::default(),
            person_limits: Limits::default(),
            default_time_limit: None,
        };
        state.teams.insert(name.into(), team);
        state
            .charged
            .insert(name.into(), BTreeMap::from([(H100.into(), gpus(charged))]));
    }
    crate::ledger::settle_all(&mut state);
    state
}

fn figures(state: &State, team: &str) -> QuotaFigures {
    quota_figures(state, &team.into(), &H100.into())
}

/// `(team, available, maximum, lent)` in GPUs.
fn check(lines: &[Line], expect: &[(&str, u64, u64, u64)]) {
    let state = tree(lines);
    for &(team, available, maximum, lent) in expect {
        let figures = figures(&state, team);
        let found = (
            figures.available.whole(),
            figures.maximum.whole(),
            figures.lent.whole(),
        );
        assert_eq!(found, (available, maximum, lent), "team {team}");
    }
}

#[test]
fn two_levels_by_hand() {
    check(
        &[
            ("c", None, [NO, NO, NO], None),
            ("a", Some("c"), [Some(10), NO, Some(6)], Some(2)),
            ("b", Some("c"), [Some(4), Some(5), NO], Some(7)),
        ],
        &[("a", 5, 14, 3), ("b", 2, 9, 0)],
    );
}

#[test]
fn three_levels_by_hand() {
    check(
        &[
            ("r", None, [Some(8), NO, NO], None),
            ("x", Some("r"), [Some(4), Some(3), Some(5)], None),
            ("a", Some("x"), [Some(6), NO, NO], Some(9)),
            ("b", Some("r"), [Some(2), NO, NO], Some(1)),
        ],
        // x may be charged its guaranteed 5, its lendable 5 and 3 borrowed; b everything but what x keeps.
        &[("a", 4, 13, 0), ("b", 10, 15, 0)],
    );
}

#[test]
fn a_team_alone_neither_lends_nor_borrows() {
    check(
        &[("a", None, [Some(8), NO, NO], Some(3))],
        &[("a", 5, 8, 0)],
    );
}

#[test]
fn a_cut_quota_leaves_nothing_available_and_evicts_nobody() {
    check(
        &[
            ("c", None, [NO, NO, NO], None),
            ("a", Some("c"), [Some(2), NO, NO], Some(9)),
            ("b", Some("c"), [Some(4), NO, NO], Some(0)),
        ],
        &[("a", 0, 6, 0), ("b", 0, 6, 4)],
    );
}

#[test]
fn what_is_lent_adds_up_to_what_is_borrowed() {
    let state = tree(&[
        ("c", None, [NO, NO, NO], None),
        ("a", Some("c"), [Some(10), NO, NO], Some(17)),
        ("b", Some("c"), [Some(5), NO, NO], Some(1)),
        ("d", Some("c"), [Some(5), NO, NO], Some(0)),
        ("e", Some("c"), [Some(5), NO, Some(2)], Some(0)),
    ]);
    let lent: Vec<u64> = ["a", "b", "d", "e"]
        .map(|team| figures(&state, team).lent.0)
        .to_vec();
    assert_eq!(figures(&state, "a").borrowed, MilliGpu::gpus(7));
    assert_eq!(lent.iter().sum::<u64>(), 7_000);
    // 7 over 4 + 5 + 2, in whole GPUs: 2 6/11, 3 2/11, 1 3/11; one more to the largest remainder.
    assert_eq!(lent, [0, 3_000, 3_000, 1_000]);
}

#[test]
fn shortage_is_told_where_it_is() {
    let state = tree(&[
        ("r", None, [Some(8), NO, NO], None),
        ("x", Some("r"), [Some(4), Some(3), Some(5)], None),
        ("a", Some("x"), [Some(6), Some(20), NO], Some(9)),
        ("b", Some("r"), [Some(2), Some(4), NO], Some(1)),
    ]);
    let tree = QuotaTree::of(&state);
    let at = |team: &str, gpus: u64| match tree.short_at(
        tree.team(&team.into()).unwrap(),
        0,
        MilliGpu::gpus(gpus),
    ) {
        ShortAt::Team => "team".to_owned(),
        ShortAt::Cohort(cohort) => tree.cohort(cohort).unwrap().to_string(),
    };
    assert_eq!(at("a", 5), "x", "x may borrow no more than 3");
    assert_eq!(at("b", 6), "team", "b may borrow no more than 4");
    let borrowers = tree.borrowers(0, 0);
    assert_eq!(borrowers, [("a".into(), MilliGpu::gpus(3))]);
}

#[test]
fn a_change_of_one_team_leaves_the_ledger_as_looking_at_all_trees_would() {
    let mut state = tree(&[
        ("r", None, [Some(4), NO, NO], None),
        ("x", Some("r"), [NO, NO, Some(3)], None),
        ("s", None, [NO, NO, NO], None),
        ("a", Some("x"), [Some(5), NO, Some(3)], Some(0)),
        ("b", Some("x"), [Some(4), NO, NO], Some(0)),
        ("c", Some("r"), [Some(3), NO, NO], Some(0)),
        ("d", Some("s"), [Some(6), NO, NO], Some(0)),
        ("e", Some("s"), [Some(2), NO, NO], Some(0)),
        ("f", None, [Some(2), NO, NO], Some(0)),
    ]);
    let mut loans = BTreeSet::new();
    let mut drawn = 20_261_130_u64;
    // Charges beyond what there is make parts that are nobody's, in either tree.
    for step in 0..2_000 {
        // Knuth's MMIX numbers; the upper bits are the varied ones.
        drawn = drawn
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let team = ["a", "b", "c", "d", "e", "f"][(drawn >> 33) as usize % 6];
        let charged = MilliGpu((drawn >> 40) % 13 * 500 + (drawn >> 50) % 3);
        let charges = state.charged.entry(team.into()).or_default();
        charges.insert(H100.into(), charged);
        crate::ledger::settle_charge(&mut state, &team.into(), &H100.into());
        let mut whole = state.clone();
        crate::ledger::settle_all(&mut whole);
        assert_eq!(state.loans, whole.loans, "step {step}: {team} {charged}");
        loans.insert(format!("{:?}", state.loans));
    }
    assert!(loans.len() > 200, "{} ledgers only", loans.len());
}
