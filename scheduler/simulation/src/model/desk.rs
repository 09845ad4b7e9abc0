//! When somebody works on a notebook, and when it stands there: the two edges that an agent beside it would tell.
//!
//! Own choice of spans: people work for 10 to 70 minutes, and then read, meet or eat; two times in five they are away for
//! so long that the idle rule strikes. A published trace of notebooks with their pauses is not known here.

use super::life::of_attempt;
use scheduler::{Activity, Job, Millis, Report};

/// The agent tells of idleness when nothing was done for so long: shorter pauses are work.
const TOLD_AFTER: Millis = Millis::minutes(5);

/// One stretch of work and the pause behind it.
fn stretch(seed: u64, job: &Job, nth: u64) -> (Millis, Millis) {
    let draws = of_attempt(seed, job.id, job.attempt)
        .of(0x6465_736b)
        .of(nth);
    let work = draws.between(0, Millis::minutes(10), Millis::minutes(70));
    let (short, long) = match draws.happens(1, 400) {
        true => (Millis::minutes(31), Millis::hours(5)),
        false => (Millis::minutes(6), Millis::minutes(30)),
    };
    (work, draws.between(2, short, long))
}

/// The next edge of a running notebook that came up at `started`.
pub(super) fn next_edge(
    seed: u64,
    job: &Job,
    started: Millis,
    known: &Activity,
) -> (Millis, Report) {
    let active = known.active.unwrap_or(started);
    let (mut from, mut nth) = (started, 0);
    loop {
        let (work, pause) = stretch(seed, job, nth);
        let (leaves, returns) = (from + work, from + work + pause);
        match known.idle_since {
            Some(since) if returns > since => return (returns, Report::Active),
            None if leaves >= active => {
                return (leaves + TOLD_AFTER, Report::Idle { since: leaves });
            }
            Some(_) | None => {}
        }
        (from, nth) = (returns, nth + 1);
    }
}
