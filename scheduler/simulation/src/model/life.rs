//! The life of a gang on the simulated fleet: bind, start up, run, save, fail, exit.

use super::desk;
use crate::draw::Draws;
use scheduler::{
    Allocation, CheckpointContract, Job, JobId, JobKind, JobSpec, Millis, Phase, Report,
};

/// Bytes of a checkpoint for each GPU of the gang: a model of 70e9 parameters at 14 bytes each on 1,024 GPUs. Inside
/// the 1 MB to 4 GB a GPU that "The Llama 3 Herd of Models" reports (section 3.3.1).
const CHECKPOINT_BYTES_PER_GPU: u64 = 70_000_000_000 * 14 / 1_024;
/// Exit code of a program that failed by itself.
const EXIT_CODE: i32 = 1;
/// Exit code of a program that was killed for its memory.
const EXIT_CODE_KILLED: i32 = 137;

fn of_job(seed: u64, job: JobId) -> Draws {
    Draws::new(seed).of(0x006a_6f62).of(job.0)
}

pub(super) fn of_attempt(seed: u64, job: JobId, attempt: u32) -> Draws {
    of_job(seed, job).of(0x6174).of(u64::from(attempt))
}

/// From the decision to all pods bound: 0.2 to 1.2 s.
pub fn bind_time(seed: u64, job: JobId, attempt: u32) -> Millis {
    of_attempt(seed, job, attempt).between(0, Millis(200), Millis(1_200))
}

/// From bound to all pods up: pulling the image and initialising, 20 to 90 s each.
pub fn start_up(seed: u64, job: JobId, attempt: u32) -> Millis {
    let draws = of_attempt(seed, job, attempt);
    let (short, long) = (Millis::seconds(20), Millis::seconds(90));
    draws.between(1, short, long) + draws.between(2, short, long)
}

/// Whether this attempt's pods never all come up: 4 in 1,000 launches. Only for jobs that leave their run time to the
/// seed: a spec that names its run time is somebody's measured example and gets what it says.
pub fn launch_fails(seed: u64, job: JobId, attempt: u32, spec: &JobSpec) -> bool {
    spec.run_time.is_none() && of_attempt(seed, job, attempt).happens(3, 4)
}

/// From the request to stop to the confirmed exit of every pod: 4 to 25 s.
pub fn exit_time(seed: u64, job: JobId, attempt: u32) -> Millis {
    of_attempt(seed, job, attempt).between(4, Millis::seconds(4), Millis::seconds(25))
}

/// From the request to save until the save begins: the program comes to the end of its step, 1 to 9 s.
pub fn notice_time(seed: u64, job: JobId, attempt: u32) -> Millis {
    of_attempt(seed, job, attempt).between(5, Millis::seconds(1), Millis::seconds(9))
}

/// How long the save that began at `began` stalls the job: the contract's time, give or take a fifth.
pub fn save_time(seed: u64, job: JobId, began: Millis, contract: &CheckpointContract) -> Millis {
    let fifth = Millis(contract.save.0 / 5);
    of_job(seed, job)
        .of(0x7361)
        .between(began.0, contract.save - fifth, contract.save + fifth)
}

/// Size of a checkpoint: in proportion to the gang's GPUs, as the model grows with them.
pub fn checkpoint_bytes(spec: &JobSpec) -> u64 {
    (u128::from(spec.gpus().0) * u128::from(CHECKPOINT_BYTES_PER_GPU) / 1_000) as u64
}

/// How much running time the work takes: the spec's, or drawn; larger gangs run longer.
///
/// Lognormal with sigma 1: one job in a hundred takes more than ten times the median. Between 2 minutes and 7 days. A
/// notebook's is the time for which its people have it, whatever they do.
pub fn run_time(seed: u64, job: JobId, spec: &JobSpec) -> Millis {
    if let Some(span) = spec.run_time {
        return span;
    }
    let median = match spec.kind {
        // Somebody's for a week of working days.
        JobKind::Notebook => Millis::hours(40),
        JobKind::Train | JobKind::Batch => median_run_time(spec.gpus().whole()),
    };
    let drawn = Millis(of_job(seed, job).lognormal(0, median.0, 1_000));
    drawn.clamp(Millis::minutes(2), Millis(7 * Millis::DAY.0))
}

/// Median run time by GPUs of the gang.
pub(crate) const fn median_run_time(gpus: u64) -> Millis {
    Millis::minutes(match gpus {
        0..=1 => 150,
        2..=4 => 260,
        5..=8 => 420,
        9..=16 => 600,
        17..=32 => 760,
        33..=64 => 1_080,
        65..=128 => 1_440,
        129..=256 => 1_920,
        _ => 2_400,
    })
}

/// Where the program fails by itself, if it does: after how much of its work, and with which exit code.
///
/// Own choice of rates, after the shape of the Acme table (NSDI'24): faults of the script strike in the first minutes
/// and again on every attempt; faults of the framework strike anywhere, and not twice. Only for jobs that leave their
/// run time to the seed.
pub fn own_failure(seed: u64, job: JobId, attempt: u32, spec: &JobSpec) -> Option<(Millis, i32)> {
    // A cell that fails leaves its notebook where it is.
    if spec.run_time.is_some() || spec.kind == JobKind::Notebook {
        return None;
    }
    let whole = run_time(seed, job, spec);
    let script = of_job(seed, job).of(0x7363);
    if script.happens(0, 60) {
        let early = script.between(1, Millis::seconds(20), Millis::minutes(6));
        return Some((early.min(whole), EXIT_CODE));
    }
    let framework = of_attempt(seed, job, attempt).of(0x6672);
    framework
        .happens(0, 25)
        .then(|| (Millis(framework.below(1, whole.0)), EXIT_CODE_KILLED))
}

/// What the simulated executor reports next about a job, and when; `None` while there is nothing to wait for: it is
/// queued, or its launch has failed and the engine's time-out will notice.
///
/// Reads nothing but the job as the engine knows it. When anything happens to the job, ask again.
pub fn next_report(seed: u64, job: &Job) -> Option<(Millis, Report)> {
    let allocation = job.allocation.as_ref()?;
    if let Some(stop) = &job.stop {
        return Some((
            stop.at + exit_time(seed, job.id, job.attempt),
            Report::Exited,
        ));
    }
    if let Some(at) = allocation.shed.and_then(|shed| shed.stopping) {
        return Some((at + exit_time(seed, job.id, job.attempt), Report::Shrunk));
    }
    match job.phase {
        // It waits, or nothing of it runs while nodes are found for it.
        Phase::Queued | Phase::Recovering => None,
        // It stands still: the engine's clock, or its next step, says how that ends.
        Phase::Running | Phase::Reclaiming if allocation.no_step_since.is_some() => None,
        Phase::Admitted => Some((
            allocation.admitted + bind_time(seed, job.id, job.attempt),
            Report::Bound,
        )),
        Phase::Starting if launch_fails(seed, job.id, job.attempt, &job.spec) => None,
        Phase::Starting => {
            let bound = allocation.bound.unwrap_or(allocation.admitted);
            Some((bound + start_up(seed, job.id, job.attempt), Report::Started))
        }
        Phase::Running | Phase::Reclaiming => Some(next_of_running(seed, job, allocation)),
    }
}

/// A point from which work is counted: at that time, that much was done.
struct Mark {
    at: Millis,
    done: Millis,
}

/// The last moment of the current attempt at which the amount of work done is known.
fn last_mark(job: &Job, allocation: &Allocation) -> Mark {
    let started = allocation.started.unwrap_or(allocation.admitted);
    match job.checkpoint {
        // Its work is the time that somebody has it.
        _ if job.spec.kind == JobKind::Notebook => Mark {
            at: started,
            done: job.ran,
        },
        Some(saved) if saved.at >= started => Mark {
            at: saved.at,
            done: saved.progress,
        },
        Some(saved) => Mark {
            at: started,
            done: saved.progress,
        },
        None => Mark {
            at: started,
            done: Millis(0),
        },
    }
}

fn next_of_running(seed: u64, job: &Job, allocation: &Allocation) -> (Millis, Report) {
    let mark = last_mark(job, allocation);
    if let (Some(began), Some(contract)) = (allocation.saving, job.spec.checkpoint.as_ref()) {
        let progress = mark.done + began.since(mark.at);
        let saved = Report::CheckpointSaved {
            progress,
            bytes: checkpoint_bytes(&job.spec),
        };
        return (began + save_time(seed, job.id, began, contract), saved);
    }
    let left = |of: Millis| mark.at + of.since(mark.done);
    let mut next = (left(run_time(seed, job.id, &job.spec)), Report::Succeeded);
    let failure = own_failure(seed, job.id, job.attempt, &job.spec);
    if let Some((after, code)) =
        failure.filter(|(after, _)| *after > mark.done && left(*after) < next.0)
    {
        next = (left(after), Report::Failed { code });
    }
    let starts = |at: Millis| Report::CheckpointStarted {
        progress: mark.done + at.since(mark.at),
    };
    // The period runs from start to start of two saves; after a save its own time is part of it.
    let shed = allocation.shed.map(|shed| shed.reclaim);
    if let Some(asked) = job.reclaim.or(shed).and_then(|reclaim| reclaim.asked) {
        let save = asked + notice_time(seed, job.id, job.attempt);
        return if save < next.0 {
            (save, starts(save))
        } else {
            next
        };
    }
    if job.spec.kind == JobKind::Notebook {
        let edge = desk::next_edge(seed, job, mark.at, &allocation.activity);
        return if edge.0 < next.0 { edge } else { next };
    }
    if let Some(contract) = &job.spec.checkpoint {
        let stalled = if mark.at > allocation.started.unwrap_or(mark.at) {
            contract.save
        } else {
            Millis(0)
        };
        let save = mark.at + contract.period.since(stalled).max(Millis::SECOND);
        if save < next.0 {
            next = (save, starts(save));
        }
    }
    next
}
