//! What somebody asks for in the last hour of the past whatever the load, so that the queue shows more than quota: a
//! job that can never run, one that the whole company's quota is short for, and one that has the quota and lacks the room.

use super::people::person;
use super::workload::Arrival;
use super::{A100, H100, RACK_NODES, RACKS, TEAMS};
use scheduler::{
    Blocker, JobKind, JobSpec, MilliGpu, Millis, Priority, State, TopologyMode, TopologyRequest,
    would_start,
};
use std::sync::Arc;

/// Twelve nodes of one rack: a rack has eight.
pub(super) fn never(at: Millis) -> Arrival {
    arrival(
        at,
        "graph-learning",
        spec("graph-learning", "link-pretrain-wide", H100, (12, "rack")),
    )
}

/// More A100 than others have left: what there is is in use.
pub(super) fn beyond_quota(at: Millis) -> Arrival {
    let spec = spec("alignment", "preference-dpo-long", A100, (16, "block"));
    let topology = TopologyRequest {
        mode: TopologyMode::Preferred,
        ..spec.topology.clone()
    };
    arrival(at, "alignment", JobSpec { topology, ..spec })
}

/// The largest gang that has the quota for A100 and no room close together: one block, or else one rack. `None` when
/// there is room for all.
pub(super) fn for_room(state: &State, at: Millis) -> Option<Arrival> {
    let block = (2..=RACKS * RACK_NODES).rev().map(|pods| (pods, "block"));
    let rack = (2..=RACK_NODES).rev().map(|pods| (pods, "rack"));
    let asks = block
        .chain(rack)
        .map(|shape| spec("voice-banking", "speech-finetune-close", A100, shape));
    let lacks_room = |spec: &JobSpec| {
        would_start(state, spec, at)
            .is_err_and(|reason| matches!(reason.dominant, Blocker::Room { .. }))
    };
    asks.into_iter()
        .find(lacks_room)
        .map(|spec| arrival(at, "voice-banking", spec))
}

fn arrival(at: Millis, team: &str, spec: JobSpec) -> Arrival {
    Arrival {
        at,
        owner: person(team, "engineer"),
        spec: Arc::new(spec),
    }
}

fn spec(team: &str, name: &str, flavour: &str, (pods, level): (u32, &str)) -> JobSpec {
    let project = TEAMS
        .iter()
        .find(|row| row.id == team)
        .and_then(|row| row.projects.first());
    JobSpec {
        name: name.to_owned(),
        team: team.into(),
        project: project.copied().unwrap_or_default().to_owned(),
        kind: JobKind::Train,
        flavours: vec![flavour.into()],
        image: format!("{}/train:4.2", team.split('-').next().unwrap_or(team)),
        priority: Priority::Normal,
        pods,
        gpus_per_pod: MilliGpu::gpus(8),
        cpu_milli_per_pod: 176_000,
        memory_mib_per_pod: 1_600_000,
        topology: TopologyRequest {
            mode: TopologyMode::Required,
            level: Some(level.into()),
            segments: None,
        },
        time_limit: Some(Millis(2 * Millis::DAY.0)),
        checkpoint: None,
        preemptible: true,
        restart_budget: 3,
        run_time: None,
    }
}
