//! Seeded lives under faults: every invariant, the same life again, and every rule of the engine met.

use simulation::trial::{Outcome, Seen, run};

const SEEDS: u64 = 20;
const EVENTS: u64 = 5_000;

fn live(seed: u64) -> Outcome {
    run(seed, EVENTS).unwrap_or_else(|finding| panic!("{finding}"))
}

#[test]
fn twenty_lives_keep_every_invariant_are_the_same_again_and_meet_every_rule() {
    let mut lives: Vec<Outcome> = Vec::new();
    std::thread::scope(|scope| {
        let halves = [0, 1].map(|half| {
            scope.spawn(move || {
                let seeds = (1..=SEEDS).filter(|seed| seed % 2 == half);
                seeds
                    .map(|seed| {
                        let life = live(seed);
                        assert_eq!(live(seed), life, "seed {seed} lived again");
                        life
                    })
                    .collect::<Vec<_>>()
            })
        });
        for half in halves {
            lives.extend(half.join().expect("a finding"));
        }
    });
    let mut seen = Seen::default();
    lives.iter().for_each(|life| seen.add(&life.seen));
    assert_eq!(seen.missing(), [], "rules that never came up");
    assert!(lives.iter().all(|life| life.restarts > 20));
    assert!(lives.iter().any(|life| life.claims.withdrawn > 0));
    let digests: std::collections::BTreeSet<u64> = lives.iter().map(|life| life.digest).collect();
    assert_eq!(digests.len(), lives.len(), "two seeds, two lives");
}
