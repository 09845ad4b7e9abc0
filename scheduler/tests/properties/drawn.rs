//! What random lives are made of: jobs, reports, health, limits.

use super::TEAMS;
use super::world::{gang, shaped};
use proptest::prelude::*;
use scheduler::*;

pub fn spec() -> impl Strategy<Value = JobSpec> {
    let gpus = prop_oneof![
        Just(250),
        Just(500),
        Just(1_000),
        Just(4_000),
        Just(8_000),
        Just(0)
    ];
    let flavours = prop_oneof![
        Just(vec!["h100"]),
        Just(vec!["a100"]),
        Just(vec!["h100", "a100"])
    ];
    let mode = prop_oneof![
        Just(TopologyMode::Required),
        Just(TopologyMode::Preferred),
        Just(TopologyMode::Unconstrained)
    ];
    let level = prop_oneof![Just("block"), Just("rack"), Just("node")];
    let priority = prop_oneof![
        Just(Priority::Low),
        Just(Priority::Normal),
        Just(Priority::High)
    ];
    let segment = prop::option::of(1..4_u32);
    let limit = prop::option::of(10..120_u64);
    let save = (5..90_u64, 0..400_u64, any::<bool>());
    let save = save.prop_map(|(period, save, on_demand)| CheckpointContract {
        period: Millis::minutes(period),
        save: Millis::seconds(save),
        on_demand,
    });
    let more = (0..3_u32, 0..2_u64, limit, prop::option::of(save), 0..5_u32);
    // The fewest pods of an elastic one, in segments; 0 = it is none.
    let least = prop_oneof![2 => Just(0), 1 => 1..4_u32];
    (
        0..TEAMS.len(),
        (1..5_u32, least),
        gpus,
        flavours,
        (mode, level, segment),
        priority,
        more,
    )
        .prop_map(
            |(
                team,
                (pods, least),
                gpus,
                flavours,
                (mode, level, segment),
                priority,
                (budget, cpu, limit, checkpoint, fixed),
            )| {
                let min_pods = (least > 0).then(|| least.min(pods) * segment.unwrap_or(1));
                let pods = segment.map_or(pods, |segment| pods * segment);
                let spec = JobSpec {
                    min_pods,
                    gpus_per_pod: MilliGpu(gpus),
                    flavours: flavours.into_iter().map(FlavourId::from).collect(),
                    priority,
                    restart_budget: budget,
                    cpu_milli_per_pod: cpu * 30_000,
                    time_limit: limit.map(Millis::minutes),
                    checkpoint,
                    preemptible: fixed > 0,
                    ..gang(TEAMS[team], pods, 0)
                };
                shaped(spec, mode, level, segment)
            },
        )
}

pub fn report() -> impl Strategy<Value = Report> {
    prop_oneof![
        Just(Report::Bound),
        Just(Report::Started),
        (0..100_u64).prop_map(|minutes| Report::CheckpointStarted {
            progress: Millis::minutes(minutes)
        }),
        Just(Report::NoStep {
            since: Millis(u64::MAX)
        }),
        Just(Report::Stepped),
        Just(Report::Idle {
            since: Millis(u64::MAX)
        }),
        Just(Report::Active),
        (0..5_u32).prop_map(|rank| Report::PodSucceeded { rank }),
        (0..100_u64).prop_map(|minutes| Report::CheckpointSaved {
            progress: Millis::minutes(minutes),
            bytes: 1
        }),
        Just(Report::Shrunk),
        Just(Report::Succeeded),
        Just(Report::Failed { code: 1 }),
        Just(Report::Exited),
    ]
}

pub fn health() -> impl Strategy<Value = Health> {
    prop_oneof![
        3 => Just(Health::Ready),
        1 => Just(Health::Cordoned),
        2 => Just(Health::Down),
        1 => Just(Health::Spare),
        1 => Just(Health::Quarantined),
    ]
}

/// Mostly nobody; otherwise one of the last ones.
pub fn after() -> impl Strategy<Value = Vec<(u64, Wants)>> {
    let one = || (0..6_u64, prop_oneof![Just(Wants::Ok), Just(Wants::Any)]);
    prop_oneof![5 => Just(Vec::new()), 1 => prop::collection::vec(one(), 1..3)]
}

pub fn limits() -> impl Strategy<Value = Limits> {
    let most = || prop::option::of(0..6_u32);
    (most(), prop::option::of(3..9_u32), most()).prop_map(|(running_jobs, waiting_jobs, eights)| {
        Limits {
            running_jobs,
            waiting_jobs,
            running_gpus: eights.map(|eights| MilliGpu::gpus(u64::from(eights) * 8)),
        }
    })
}

pub fn hold_mode() -> impl Strategy<Value = HoldMode> {
    prop_oneof![3 => Just(HoldMode::Hold), 1 => Just(HoldMode::Drain)]
}
