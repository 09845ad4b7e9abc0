//! What must always be true; checked after every event in tests and simulations.
//!
//! - A card is taken by exactly the gangs that have it, and never beyond its thousandths; the same for CPU and memory.
//! - A gang has all of its pods or none (an elastic one at least its fewest, in whole segments), each on whole cards of its flavour or on a share of one; but for those that are
//!   gone, and are on record as such. What is said of these in `failure`.
//! - `charged` is the sum over admitted, starting, running and recovering jobs: a victim's leaves when it is taken.
//! - Own and borrowed add up to what a job has; a team's own parts stay inside its nominal, its borrowed part is what it
//!   is charged beyond that, and lies on its newest admissions.
//! - The ledger of who borrows from whom: rows add up to what is borrowed, and nobody lends what it uses.
//! - What is said of claims in `claim::holds`, and of holds in `hold`.
//! - What is said of notebooks in `notebook`.
//! - The lists beside the jobs (the queue, due times, the order of admissions) say what the jobs say.

use crate::{FlavourId, FreeNode, Job, JobId, MilliGpu, NodeId, Phase, State, TeamId};
use std::collections::{BTreeMap, BTreeSet};

/// The first broken invariant, in words; `Ok` when all hold.
pub fn check(state: &State) -> Result<(), String> {
    for job in state.jobs.values() {
        check_job(job)?;
    }
    check_nodes(state)?;
    check_charged(state)?;
    check_entitlements(state)?;
    crate::ledger::check(state)?;
    crate::claim::check(state)?;
    crate::hold::check(state)?;
    crate::failure::check(state)?;
    crate::depend::check(state)?;
    crate::limit::check(state)?;
    crate::notebook::check(state)?;
    check_lists(state)
}

fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(broken()) }
}

fn check_job(job: &Job) -> Result<(), String> {
    let id = job.id;
    let has = job.allocation.is_some();
    ensure(has == (job.phase != Phase::Queued), || {
        format!("job {id} is {:?} and has an allocation: {has}", job.phase)
    })?;
    ensure(has || job.stop.is_none(), || {
        format!("job {id} waits and is being stopped")
    })?;
    let Some(allocation) = &job.allocation else {
        return Ok(());
    };
    let pods = &allocation.placement.pods;
    let gone = allocation.gone.len();
    let (size, sizes) = (allocation.size(), job.spec.least_pods()..=job.spec.pods);
    let whole = size.is_multiple_of(job.spec.step_pods());
    ensure(sizes.contains(&size) && whole, || {
        format!(
            "job {id} has {} pods, {gone} gone, of {sizes:?}",
            pods.len()
        )
    })?;
    let keeps = allocation.shed.map(|shed| shed.keeps);
    ensure(
        keeps.is_none_or(|keeps| (job.spec.least_pods()..size).contains(&keeps)),
        || format!("job {id} keeps {keeps:?} of its {size} pods"),
    )?;
    for pod in pods {
        let gpus = MilliGpu(u64::from(pod.cards.count_ones()) * u64::from(pod.milli));
        ensure(gpus == job.spec.gpus_per_pod, || {
            format!(
                "a pod of job {id} has {gpus}, not {}",
                job.spec.gpus_per_pod
            )
        })?;
    }
    let charged = job.spec.gpus_of(keeps.unwrap_or(size));
    ensure(allocation.gpus == charged, || {
        format!("job {id} has {} GPUs", allocation.gpus)
    })?;
    let (own, borrowed) = (allocation.own, allocation.borrowed);
    ensure(own + borrowed == allocation.gpus, || {
        format!("job {id}: own {own} and borrowed {borrowed} do not add up")
    })
}

/// What gangs take of one node.
#[derive(Default)]
struct Taken {
    cards: [u64; 32],
    cpu_milli: u64,
    memory_mib: u64,
    jobs: BTreeSet<JobId>,
}

fn check_nodes(state: &State) -> Result<(), String> {
    let mut taken = BTreeMap::<NodeId, Taken>::new();
    for job in state.jobs.values() {
        let Some(allocation) = &job.allocation else {
            continue;
        };
        for pod in &allocation.placement.pods {
            let node = state
                .nodes
                .get(&pod.node)
                .ok_or_else(|| format!("job {} is on no node", job.id))?;
            let flavour = &allocation.placement.flavour;
            let fits = flavour.is_none() || *flavour == node.node.flavour;
            ensure(fits, || {
                format!("job {} is on node {} of another flavour", job.id, pod.node)
            })?;
            let taken = taken.entry(pod.node).or_default();
            taken.jobs.insert(job.id);
            taken.cpu_milli += job.spec.cpu_milli_per_pod;
            taken.memory_mib += job.spec.memory_mib_per_pod;
            for card in (0..32).filter(|card| pod.cards & (1 << card) != 0) {
                taken.cards[card] += u64::from(pod.milli);
            }
        }
    }
    let nothing = Taken::default();
    state
        .nodes
        .iter()
        .try_for_each(|(id, free)| check_node(free, taken.get(id).unwrap_or(&nothing)))
}

fn check_node(free: &FreeNode, taken: &Taken) -> Result<(), String> {
    let id = free.node.id;
    for (card, taken) in taken.cards.iter().enumerate() {
        let whole = if card < usize::from(free.node.cards) {
            1_000
        } else {
            0
        };
        let left = free
            .free_milli
            .get(card)
            .map_or(0, |&milli| u64::from(milli));
        ensure(left + taken == whole, || {
            format!("card {card} of node {id}: {taken} taken, {left} free")
        })?;
    }
    let cpu = free.free_cpu_milli + taken.cpu_milli;
    ensure(cpu == free.node.cpu_milli, || {
        format!("CPU of node {id}: {} taken", taken.cpu_milli)
    })?;
    let memory = free.free_memory_mib + taken.memory_mib;
    ensure(memory == free.node.memory_mib, || {
        format!("memory of node {id}: {} taken", taken.memory_mib)
    })?;
    let listed: BTreeSet<JobId> = free.jobs.iter().copied().collect();
    ensure(
        listed == taken.jobs && listed.len() == free.jobs.len(),
        || format!("node {id} lists {:?}", free.jobs),
    )
}

fn check_charged(state: &State) -> Result<(), String> {
    let mut charged = BTreeMap::<TeamId, BTreeMap<FlavourId, MilliGpu>>::new();
    for job in state.jobs.values() {
        let Some(allocation) = job.allocation.as_ref().filter(|_| job.is_charged()) else {
            continue;
        };
        let Some(flavour) = &allocation.placement.flavour else {
            continue;
        };
        *charged
            .entry(job.spec.team.clone())
            .or_default()
            .entry(flavour.clone())
            .or_default() += allocation.gpus;
    }
    ensure(charged == state.charged, || {
        format!("charged is {:?}, its jobs have {charged:?}", state.charged)
    })
}

fn check_entitlements(state: &State) -> Result<(), String> {
    for (team, of_team) in &state.laid {
        for (flavour, jobs) in of_team {
            check_laid(state, team, flavour, jobs)?;
        }
    }
    let listed = state
        .laid
        .values()
        .flat_map(BTreeMap::values)
        .map(Vec::len)
        .sum::<usize>();
    let charged = |job: &&Job| {
        let allocation = job.allocation.as_ref().filter(|_| job.is_charged());
        allocation.is_some_and(|allocation| allocation.placement.flavour.is_some())
    };
    let charged = state.jobs.values().filter(charged).count();
    ensure(listed == charged, || {
        format!("{listed} jobs are listed as admitted, {charged} are")
    })
}

fn check_laid(
    state: &State,
    team: &TeamId,
    flavour: &FlavourId,
    jobs: &[JobId],
) -> Result<(), String> {
    let (charged, nominal) = (state.charged(team, flavour), state.nominal(team, flavour));
    let allocations = jobs
        .iter()
        .filter_map(|id| state.jobs.get(id)?.allocation.as_ref());
    let allocations: Vec<_> = allocations.collect();
    ensure(allocations.len() == jobs.len(), || {
        format!("team {team} lists jobs without an allocation")
    })?;
    ensure(
        allocations.is_sorted_by_key(|allocation| allocation.order),
        || format!("team {team}: out of order"),
    )?;
    let own: MilliGpu = allocations.iter().map(|allocation| allocation.own).sum();
    ensure(own == charged.min(nominal), || {
        format!("team {team} has {own} of its own, of {nominal}")
    })?;
    let first = allocations
        .iter()
        .position(|allocation| allocation.borrowed > MilliGpu::ZERO);
    let newer = first.map_or(&[][..], |first| &allocations[first + 1..]);
    ensure(
        newer
            .iter()
            .all(|allocation| allocation.own == MilliGpu::ZERO),
        || format!("team {team}: the borrowed part does not lie on the newest admissions"),
    )
}

fn check_lists(state: &State) -> Result<(), String> {
    let queue: BTreeSet<_> = state
        .jobs
        .values()
        .filter(|job| job.phase == Phase::Queued)
        .map(Job::turn)
        .collect();
    ensure(queue == state.queue, || {
        "the queue is not the waiting jobs".into()
    })?;
    let due = state
        .jobs
        .values()
        .filter_map(|job| Some((job.due(&state.policy)?, job.id)));
    ensure(due.collect::<BTreeSet<_>>() == state.due, || {
        "the due times are not the jobs'".into()
    })
}
