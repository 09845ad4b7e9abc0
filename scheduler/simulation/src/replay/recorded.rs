//! What every trace says about a job, whatever its format.

use crate::trace::{PodRow, SacctRead};
use scheduler::{MilliGpu, Millis};

/// A job as a trace recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its name or number in the trace.
    pub name: String,
    /// Who is charged.
    pub team: String,
    /// Whose.
    pub owner: String,
    /// When it came in.
    pub submitted: Millis,
    /// Start and end; `None` = it was never given a node, and counts neither as a job nor as waiting.
    pub ran: Option<(Millis, Millis)>,
    /// GPUs it had.
    pub gpus: MilliGpu,
    /// CPU it had, in thousandths of a core.
    pub cpu_milli: u64,
    /// Nodes it had.
    pub nodes: u32,
}

/// Rows of Slurm accounting; a row of an array stands for each of its tasks.
pub fn recorded_sacct(read: &SacctRead) -> Vec<Recorded> {
    let all = read.jobs.rows.iter().flat_map(|job| {
        let one = Recorded {
            name: job.id.clone(),
            team: job.account.clone(),
            owner: job.user.clone(),
            submitted: job.submit,
            ran: job
                .start
                .filter(|_| job.ran())
                .map(|start| (start, job.end)),
            gpus: MilliGpu::gpus(job.gpus),
            cpu_milli: job.cpus * 1_000,
            nodes: u32::try_from(job.nodes).unwrap_or(u32::MAX),
        };
        (0..job.count()).map(move |_| one.clone())
    });
    all.collect()
}

/// Pods; one that was never scheduled or never deleted has no stretch of its own.
pub fn recorded_pods(pods: &[PodRow]) -> Vec<Recorded> {
    let one = |pod: &PodRow| Recorded {
        name: pod.name.clone(),
        team: "trace".into(),
        owner: "trace".into(),
        submitted: pod.created,
        ran: pod.scheduled.zip(pod.deleted),
        gpus: pod.gpus,
        cpu_milli: pod.cpu_milli,
        nodes: 1,
    };
    pods.iter().map(one).collect()
}
