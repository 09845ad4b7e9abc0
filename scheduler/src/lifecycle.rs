//! The life of a job as a table: phase x step, without a default.

use crate::Phase;

/// What can happen to a job, as far as its phase is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The decision that it may start.
    Admit,
    /// All pods bound.
    Bind,
    /// All pods up.
    Start,
    /// A save began.
    Save,
    /// A save is durable.
    Saved,
    /// Steps stopped or went on, or one pod ended well.
    Tell,
    /// A stop was asked for.
    Stop,
    /// It is taken for a claim: its charge leaves.
    Reclaim,
    /// A pod was lost: what is left of the gang is being stopped.
    Lose,
    /// Confirmed gone; it keeps its nodes.
    Halt,
    /// Others were found in place of the nodes that it lost.
    Replace,
    /// Confirmed gone; it waits again, or its back-off is over.
    Requeue,
    /// Over.
    End,
}

/// Where a step leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Into that phase (often the same).
    To(Phase),
    /// Out of the state.
    Gone,
    /// The step does not fit the phase.
    Never,
}

/// The table.
pub(crate) fn next(phase: Phase, step: Step) -> Next {
    use Next::{Gone, Never, To};
    use Phase::{Admitted, Queued, Reclaiming, Recovering, Running, Starting};
    use Step::{
        Admit, Bind, End, Halt, Lose, Reclaim, Replace, Requeue, Save, Saved, Start, Stop, Tell,
    };
    match (phase, step) {
        (Queued, Admit) => To(Admitted),
        (Queued, Requeue) => To(Queued),
        (Queued, End) => Gone,
        (Queued, Bind | Start | Save | Saved | Tell | Stop | Reclaim | Lose) => Never,
        (Queued, Halt | Replace) => Never,

        (Admitted, Bind) => To(Starting),
        (Admitted, Stop) => To(Admitted),
        (Admitted, Reclaim) => To(Reclaiming),
        (Admitted, Lose) => To(Recovering),
        (Admitted, Requeue) => To(Queued),
        (Admitted, End) => Gone,
        (Admitted, Admit | Start | Save | Saved | Tell | Halt | Replace) => Never,

        (Starting, Start) => To(Running),
        (Starting, Stop) => To(Starting),
        (Starting, Reclaim) => To(Reclaiming),
        (Starting, Lose) => To(Recovering),
        (Starting, Requeue) => To(Queued),
        (Starting, End) => Gone,
        (Starting, Admit | Bind | Save | Saved | Tell | Halt | Replace) => Never,

        (Running, Save | Saved | Tell | Stop) => To(Running),
        (Running, Reclaim) => To(Reclaiming),
        (Running, Lose) => To(Recovering),
        (Running, Requeue) => To(Queued),
        (Running, End) => Gone,
        (Running, Admit | Bind | Start | Halt | Replace) => Never,

        // One that was taken on its way up may still be bound. One that loses a pod goes on leaving: its charge is gone.
        (Reclaiming, Bind | Save | Saved | Tell | Stop | Lose) => To(Reclaiming),
        (Reclaiming, Requeue) => To(Queued),
        (Reclaiming, End) => Gone,
        (Reclaiming, Admit | Start | Reclaim | Halt | Replace) => Never,

        // A save that was durable just before the loss may be told just after it.
        (Recovering, Saved | Stop | Lose | Halt) => To(Recovering),
        (Recovering, Replace) => To(Admitted),
        (Recovering, Requeue) => To(Queued),
        (Recovering, End) => Gone,
        (Recovering, Admit | Bind | Start | Save | Tell | Reclaim) => Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: [Phase; 6] = [
        Phase::Queued,
        Phase::Admitted,
        Phase::Starting,
        Phase::Running,
        Phase::Reclaiming,
        Phase::Recovering,
    ];

    #[test]
    fn every_job_can_end_and_every_gang_can_be_stopped() {
        for phase in PHASES {
            assert_eq!(next(phase, Step::End), Next::Gone, "{phase:?}");
            assert_eq!(
                next(phase, Step::Stop) == Next::Never,
                phase == Phase::Queued,
                "{phase:?}"
            );
        }
    }

    #[test]
    fn only_a_waiting_job_is_admitted() {
        for phase in PHASES {
            assert_eq!(
                next(phase, Step::Admit) != Next::Never,
                phase == Phase::Queued,
                "{phase:?}"
            );
        }
    }

    #[test]
    fn a_lost_pod_makes_every_gang_recover_that_is_not_leaving() {
        let leaves = |phase: &Phase| matches!(phase, Phase::Queued | Phase::Reclaiming);
        assert_eq!(
            next(Phase::Reclaiming, Step::Lose),
            Next::To(Phase::Reclaiming)
        );
        for phase in PHASES.into_iter().filter(|phase| !leaves(phase)) {
            assert_eq!(
                next(phase, Step::Lose),
                Next::To(Phase::Recovering),
                "{phase:?}"
            );
        }
    }
}
