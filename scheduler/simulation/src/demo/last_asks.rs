//! What somebody asks for in the last hour of the past whatever the load, so that the queue shows more than quota: a
//! job that can never run, one that the whole company's quota is short for, one that has the quota and lacks the room, and
//! one for whose room those who borrow would have to give back, where a person is asked first.

use super::people::person;
use super::teams::APPROVED;
use super::workload::Arrival;
use super::{A100, H100, RACK_NODES, RACKS, TEAMS};
use scheduler::{
    Blocker, CheckpointContract, Command, Fact, JobId, JobKind, JobSpec, MilliGpu, Millis,
    Priority, State, TopologyMode, TopologyRequest, apply, decide, plan, quota_figures,
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
        would_start(state, &"anybody".into(), spec, at)
            .is_err_and(|reason| matches!(reason.dominant, Blocker::Room { .. }))
    };
    asks.into_iter()
        .find(lacks_room)
        .map(|spec| arrival(at, "voice-banking", spec))
}

/// Gangs that somebody may ask for together: pods, and the domain that they must share.
const GANGS: [(u32, &str); 6] = [
    (8, "rack"),
    (6, "rack"),
    (4, "rack"),
    (2, "rack"),
    (2, "block"),
    (1, "block"),
];

/// What is left of the quota of A100, borrowed node by node by a team of another cohort, unless somebody could be asked to
/// give back already: whoever needs then what is theirs has to ask.
pub(super) fn rest_lent(state: &State, at: Millis) -> Vec<Arrival> {
    if for_a_person(state, at).is_some() {
        return Vec::new();
    }
    let team = "rl-lab";
    let left = quota_figures(state, &team.into(), &A100.into()).available;
    let one = JobSpec {
        checkpoint: Some(CheckpointContract {
            period: Millis::minutes(70),
            save: Millis::seconds(20),
            on_demand: true,
        }),
        run_time: Some(Millis::DAY),
        ..spec(team, "offline-rl-sweep", A100, (1, "node"))
    };
    let jobs = left.0 / one.gpus().0;
    (0..jobs).map(|_| arrival(at, team, one.clone())).collect()
}

/// A gang of A100 for which others, who borrow more, would have to give back, where a person is asked first: fraud-ml's if
/// there is one, or else another team's. `None` when there is room for all, or nobody could be asked.
pub(super) fn for_a_person(state: &State, at: Millis) -> Option<Arrival> {
    let asked = TEAMS.iter().filter(|row| APPROVED.contains(&row.cohort));
    let mut teams: Vec<&str> = asked.map(|row| row.id).collect();
    teams.sort_by_key(|team| *team != "fraud-ml");
    let all = teams.iter().flat_map(|team| {
        GANGS.map(|gang| arrival(at, team, spec(team, "model-refresh", A100, gang)))
    });
    let mut waits = all.filter(|ask| would_start(state, &"anybody".into(), &ask.spec, at).is_err());
    waits.find(|ask| is_requested(state, ask, at))
}

/// Whether a person would be asked about a claim for it in the next cycle.
fn is_requested(state: &State, ask: &Arrival, at: Millis) -> bool {
    let command = Command::Submit {
        owner: ask.owner.clone(),
        spec: ask.spec.clone(),
    };
    let Ok(events) = decide(state, &command, at) else {
        return false;
    };
    let mut after = state.clone();
    events.iter().for_each(|event| apply(&mut after, event));
    let asks = JobId(after.counts.submitted);
    let planned = plan(&after, at);
    let mut facts = planned.events.iter().map(|event| &event.fact);
    facts.any(|fact| matches!(fact, Fact::ClaimRequested { job, .. } if *job == asks))
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
        min_pods: None,
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
        after: Vec::new(),
        run_time: None,
    }
}
