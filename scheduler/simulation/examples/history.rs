use scheduler::*;
use simulation::driver::Sink;
#[derive(Default)]
struct W {
    events: u64,
    lines: u64,
    days: u64,
}
fn free_blocks(s: &State) -> (usize, u64, u64) {
    let mut b: std::collections::BTreeMap<&str, (u32, u32)> = Default::default();
    for n in s.nodes.values() {
        if n.node.health == Health::Ready {
            let e = b.entry(n.node.domains[0].as_str()).or_default();
            e.1 += 1;
            if n.jobs.is_empty() && n.node.pool == Pool::Batch {
                e.0 += 1;
            }
        }
    }
    let busy = |f: &str| {
        s.charged
            .values()
            .flat_map(|m| m.get(&FlavourId::from(f)))
            .map(|g| g.whole())
            .sum()
    };
    (
        b.iter()
            .filter(|(k, v)| k.starts_with("h100") && v.0 >= 32)
            .count(),
        busy("h100-80g"),
        busy("a100-80g"),
    )
}
impl Sink for W {
    fn event(&mut self, _s: &State, _e: &Event, l: &[UsageLine]) {
        self.events += 1; if let Fact::NodeHealthSet{node,health,why} = &_e.fact { let n=&_s.nodes[node].node; if _e.at.0 > 1_767_000_000_000-90*3600_000 && std::env::args().nth(3).is_some() { println!("-{}min {} {:?} {}", (1_767_000_000_000-_e.at.0)/60000, n.name, health, why); } }
        self.lines += l.len() as u64;
    }
    fn batch(&mut self, s: &State, b: &simulation::driver::Batch) {
        let d = b.at.0 / (Millis::DAY.0 / 2);
        if d != self.days {
            self.days = d;
            let q = s.jobs.values().filter(|j| j.phase == Phase::Queued).count();
            let down = s
                .nodes
                .values()
                .filter(|n| n.node.health == Health::Down)
                .count();
            println!(
                "{d} free blocks/h100/a100 {:?} queued {q} live {} down {down}",
                free_blocks(s),
                s.jobs.len()
            );
        }
    }
}
fn main() {
    let seed: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let days: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let now = Millis(1_767_000_000_000);
    let t = std::time::Instant::now();
    let mut w = W::default();
    let e =
        simulation::demo::history(seed, Millis(now.0 - days * Millis::DAY.0), now, &mut w).unwrap();
    println!(
        "{:?} events {} lines {} counts {:?}",
        t.elapsed(),
        w.events,
        w.lines,
        e.state.counts
    );
    let waiting = plan(&e.state, now).waiting;
    let mut kinds: std::collections::BTreeMap<String, usize> = Default::default();
    for x in &waiting {
        let j = serde_json::to_value(&x.reason.dominant).unwrap();
        *kinds
            .entry(j["blocker"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    println!(
        "END seed {seed} free/h100/a100 {:?} waiting {} {kinds:?} jobs {}",
        free_blocks(&e.state),
        waiting.len(),
        e.state.counts.submitted
    );
    let mut b: std::collections::BTreeMap<&str, (u32, u32, u32)> = Default::default();
    for n in e.state.nodes.values() {
        let k = b.entry(n.node.domains[0].as_str()).or_default();
        k.0 += u32::from(n.node.health == Health::Ready);
        k.1 += u32::from(n.jobs.is_empty() && n.node.health == Health::Ready);
        k.2 += u32::from(n.node.health == Health::Down);
    }
    println!("{:?}", b.values().collect::<Vec<_>>());
    for n in e.state.nodes.values() { let k = b[n.node.domains[0].as_str()]; if k.1 >= 24 && !n.jobs.is_empty() { for j in &n.jobs { let j = &e.state.jobs[j]; println!("{} {:?} job {} {} pods {} gpus {:?} admitted -{}min within {:?}", n.node.name, n.node.health, j.id, j.spec.pods, j.spec.gpus_per_pod, j.spec.topology, now.since(j.allocation.as_ref().unwrap().admitted).0/60000, j.allocation.as_ref().unwrap().placement.within); } } }
    if std::env::args().nth(3).is_some() {
        for x in &waiting {
            println!(
                "{} {} {:?} {}",
                x.job,
                e.state.jobs[&x.job].spec.team,
                x.position,
                serde_json::to_string(&x.reason.dominant).unwrap()
            );
        }
    }
}
