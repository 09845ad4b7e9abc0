//! The demo's past: equal for equal seeds, audited, and as full and as free as promised.

use scheduler::{
    Blocker, Event, Fact, FlavourId, Health, JobKind, JobSpec, MilliGpu, Millis, Name, Phase, Pool,
    Priority, Segments, Stage, State, TopologyMode, TopologyRequest, UsageLine, UsagePhase, Victim,
    plan, stood_in_for, would_start,
};
use simulation::audit::{Auditor, Breach};
use simulation::demo::{A100, Arrival, H100, Item, demo_driver, history};
use simulation::driver::{Engine, Sink};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A Wednesday in 2026, at a quarter past two in the afternoon.
const NOW: Millis = Millis(1_782_310_500_000);

fn days_before(days: u64) -> Millis {
    Millis(NOW.0 - days * Millis::DAY.0)
}

/// Everything that was said, as one number.
#[derive(Default)]
struct Digest(DefaultHasher, u64);
impl Sink for Digest {
    fn event(&mut self, _state: &State, event: &Event, lines: &[UsageLine]) {
        self.1 += 1;
        format!("{event:?} {lines:?}").hash(&mut self.0);
    }
}

fn digest(seed: u64) -> (u64, u64) {
    let mut digest = Digest::default();
    history(seed, days_before(3), NOW, &mut digest).expect("the demo's configuration is taken");
    (digest.0.finish(), digest.1)
}

#[test]
fn two_pasts_of_one_seed_are_equal_and_of_two_seeds_are_not() {
    let (one, events) = digest(1);
    assert!(events > 2_000, "{events} events in three days");
    assert_eq!(digest(1), (one, events));
    assert_ne!(digest(2).0, one);
}

/// The same, without listening to why jobs wait.
#[derive(Default)]
struct Deaf(Digest);
impl Sink for Deaf {
    fn wants_reasons(&self) -> bool {
        false
    }
    fn event(&mut self, state: &State, event: &Event, lines: &[UsageLine]) {
        self.0.event(state, event, lines);
    }
}

#[test]
fn a_past_is_the_same_when_nobody_asks_why_jobs_wait() {
    let mut deaf = Deaf::default();
    history(1, days_before(3), NOW, &mut deaf).expect("the demo's configuration is taken");
    assert_eq!(digest(1), (deaf.0.0.finish(), deaf.0.1));
}

#[derive(Default)]
struct Watch(Auditor, Option<Breach>);
impl Sink for Watch {
    fn wants_reasons(&self) -> bool {
        false
    }
    fn event(&mut self, state: &State, event: &Event, lines: &[UsageLine]) {
        if self.1.is_none() {
            self.1 = self.0.observe(state, event, lines).err();
        }
        if let Fact::NodeHealthSet { node, .. } = &event.fact {
            let block = &state.nodes[node].node.domains[0];
            let in_service = in_service(state, block);
            assert_eq!(in_service, 32, "{block} after {event:?}");
        }
    }
}

/// Nodes of a block that count as part of the fleet: neither spare nor stood in for by one.
fn in_service(state: &State, block: &Name) -> usize {
    let beside = stood_in_for(state);
    let nodes = state.nodes.values().map(|free| &free.node);
    nodes
        .filter(|node| node.domains.first() == Some(block))
        .filter(|node| node.health != Health::Spare && !beside.contains(&node.id))
        .count()
}

fn past(seed: u64) -> Engine {
    let mut watch = Watch::default();
    let engine =
        history(seed, days_before(9), NOW, &mut watch).expect("the demo's configuration is taken");
    assert_eq!(watch.1, None);
    engine
}

/// Blocks of batch H100 with all 32 nodes ready and nothing on them.
fn free_blocks(state: &State) -> usize {
    let mut idle: BTreeMap<&str, u32> = BTreeMap::new();
    for free in state.nodes.values() {
        let is_idle = free.jobs.is_empty()
            && free.node.health == Health::Ready
            && free.node.pool == Pool::Batch;
        if is_idle && free.node.flavour == Some(H100.into()) {
            *idle.entry(free.node.domains[0].as_str()).or_default() += 1;
        }
    }
    idle.values().filter(|nodes| **nodes >= 32).count()
}

fn charged(state: &State, flavour: &str) -> u64 {
    let flavour = FlavourId::from(flavour);
    state
        .charged
        .values()
        .filter_map(|of| of.get(&flavour))
        .map(|gpus| gpus.whole())
        .sum()
}

fn ask(pods: u32, topology: TopologyRequest) -> JobSpec {
    JobSpec {
        name: "card-sequence-finetune".into(),
        team: "fraud-ml".into(),
        project: "card-fraud".into(),
        kind: JobKind::Train,
        flavours: vec![H100.into()],
        image: "fraud/train:4.12".into(),
        priority: Priority::Normal,
        pods,
        min_pods: None,
        gpus_per_pod: MilliGpu::gpus(8),
        cpu_milli_per_pod: 96_000,
        memory_mib_per_pod: 800_000,
        topology,
        time_limit: Some(Millis::hours(24)),
        checkpoint: None,
        preemptible: true,
        restart_budget: 5,
        after: Vec::new(),
        run_time: Some(Millis::minutes(30)),
    }
}

fn in_blocks(segments: Option<u32>) -> TopologyRequest {
    let segments = segments.map(|pods| Segments { pods });
    TopologyRequest {
        mode: TopologyMode::Required,
        level: Some("block".into()),
        segments,
    }
}

fn blocks_of(state: &State, placement: &scheduler::Placement) -> usize {
    let blocks = placement
        .pods
        .iter()
        .map(|pod| &state.nodes[&pod.node].node.domains[0]);
    blocks.collect::<BTreeSet<_>>().len()
}

#[test]
fn the_past_leaves_four_whole_blocks_for_a_gang_of_1024_gpus() {
    let state = past(1).state;
    assert!(
        free_blocks(&state) >= 4,
        "{} blocks free",
        free_blocks(&state)
    );
    let four = would_start(&state, &"ada".into(), &ask(128, in_blocks(Some(32))), NOW)
        .expect("four blocks are free");
    assert_eq!(blocks_of(&state, &four), 4);
    let one =
        would_start(&state, &"ada".into(), &ask(4, in_blocks(None)), NOW).expect("32 GPUs fit");
    assert_eq!(blocks_of(&state, &one), 1);
}

#[test]
fn a_month_of_breaks_and_updates_leaves_the_fleet_as_large_as_it_is_said_to_be() {
    for seed in [7, 11] {
        let mut watch = Watch::default();
        let engine =
            history(seed, days_before(30), NOW, &mut watch).expect("the configuration is taken");
        assert_eq!(watch.1, None);
        let state = &engine.state;
        let blocks: BTreeSet<&Name> = state
            .nodes
            .values()
            .filter_map(|free| free.node.domains.first())
            .collect();
        for block in blocks {
            assert_eq!(in_service(state, block), 32, "{block}, seed {seed}");
        }
    }
}

#[test]
fn a_gang_beyond_the_fleet_can_never_run_and_is_told_the_fleets_size() {
    let driver =
        demo_driver(1, days_before(1), &mut ()).expect("the demo's configuration is taken");
    let anywhere = TopologyRequest {
        mode: TopologyMode::Unconstrained,
        level: None,
        segments: None,
    };
    let reason = would_start(
        &driver.engine.state,
        &"ada".into(),
        &ask(1_025, anywhere),
        NOW,
    )
    .expect_err("8,200 GPUs are too many");
    let Blocker::ExceedsMaximum { asks, limit, .. } = reason.dominant else {
        panic!("{reason:?}")
    };
    assert_eq!(
        (asks, limit),
        (MilliGpu::gpus(8_200), MilliGpu::gpus(4_096))
    );
}

#[test]
fn the_past_ends_busy_and_with_every_kind_of_reason_in_the_queue() {
    let state = past(7).state;
    let (h100, a100) = (charged(&state, H100), charged(&state, A100));
    assert!(
        (2_000..=2_800).contains(&h100) && a100 > 200,
        "{h100} H100 and {a100} A100 charged"
    );
    let waiting = plan(&state, NOW).waiting;
    let count = |is: fn(&Blocker) -> bool| {
        waiting
            .iter()
            .filter(|job| is(&job.reason.dominant))
            .count()
    };
    assert_eq!(
        count(|blocker| matches!(blocker, Blocker::ExceedsMaximum { .. })),
        1
    );
    assert!(count(|blocker| matches!(blocker, Blocker::Quota { at: None, .. })) >= 5);
    assert!(
        (12..=50).contains(&waiting.len()),
        "{} waiting",
        waiting.len()
    );
}

#[test]
fn the_past_ends_with_a_request_that_a_person_has_hours_to_answer() {
    for seed in [1, 7] {
        let state = past(seed).state;
        let mut open = state.claims.values();
        let asked = open.find(|claim| claim.stage == Stage::Requested);
        let asked = asked.unwrap_or_else(|| panic!("nobody is asked, seed {seed}"));
        let others = |victim: &Victim| victim.team != asked.team;
        assert!(asked.victims.iter().all(others), "seed {seed}");
        assert!(
            asked.deadline >= Some(NOW + Millis::hours(3)),
            "seed {seed}"
        );
    }
}

/// What one job did.
#[derive(Default)]
struct Diary {
    said: Vec<(u64, &'static str)>,
    lines: Vec<UsageLine>,
}
impl Sink for Diary {
    fn event(&mut self, _state: &State, event: &Event, lines: &[UsageLine]) {
        let word = match &event.fact {
            Fact::GangBound { .. } => "bound",
            Fact::GangStarted { .. } => "started",
            Fact::CheckpointStarted { .. } => "saving",
            Fact::CheckpointSaved { .. } => "saved",
            Fact::JobEnded { .. } => "ended",
            _ => return self.lines.extend_from_slice(lines),
        };
        self.said.push((event.at.0, word));
        self.lines.extend_from_slice(lines);
    }
}

#[test]
fn a_job_runs_for_the_time_that_its_spec_names_and_saves_on_the_way() {
    let epoch = days_before(1).hour_floor();
    let mut driver = demo_driver(3, epoch, &mut ()).expect("the demo's configuration is taken");
    // Nobody else comes: what follows is this job's alone.
    driver.agenda = simulation::driver::Agenda::default();
    let contract = scheduler::CheckpointContract {
        period: Millis::minutes(70),
        save: Millis::seconds(50),
        on_demand: true,
    };
    let spec = JobSpec {
        run_time: Some(Millis::hours(3)),
        checkpoint: Some(contract),
        ..ask(4, in_blocks(None))
    };
    driver.agenda.push(
        epoch,
        Item::Submit(Arrival {
            at: epoch,
            owner: "fraud-ml.engineer".into(),
            spec: Arc::new(spec),
        }),
    );
    let mut diary = Diary::default();
    driver.run(None, &mut diary);
    let words: Vec<&str> = diary.said.iter().map(|(_, word)| *word).collect();
    assert_eq!(
        words,
        [
            "bound", "started", "saving", "saved", "saving", "saved", "ended"
        ]
    );
    let at = |index: usize| diary.said[index].0;
    let saving = (at(3) - at(2)) + (at(5) - at(4));
    assert_eq!(at(6) - at(1), Millis::hours(3).0 + saving);
    let billed: u64 = diary
        .lines
        .iter()
        .filter(|line| line.phase == UsagePhase::Save)
        .map(|line| line.to.since(line.from).0)
        .sum();
    assert_eq!(billed, saving);
    assert!(
        (at(2) - at(1)).abs_diff(Millis::minutes(70).0) < 1_000 && driver.world.refused.is_empty()
    );
    assert!(
        driver
            .engine
            .state
            .jobs
            .values()
            .all(|job| job.phase == Phase::Queued)
    );
}
