//! The engine on a real trace, audited after every event.

use scheduler::{Event, State, UsageLine};
use simulation::audit::{Auditor, Breach};
use simulation::driver::Sink;
use simulation::replay::{Fleet, Mode, Report, Request, run_watched};
use std::path::PathBuf;

/// The file's bytes, or `None` with a word that the test was skipped.
fn data(test: &str, path: &str) -> Option<Vec<u8>> {
    let Some(shared) = std::env::var_os("MUSTER_SHARED") else {
        println!("skipped: {test} (MUSTER_SHARED is not set)");
        return None;
    };
    let file = PathBuf::from(shared).join("data").join(path);
    Some(std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())))
}

/// Keeps the first breach.
#[derive(Default)]
struct Watch {
    auditor: Auditor,
    breach: Option<Breach>,
}

impl Sink for Watch {
    fn event(&mut self, state: &State, event: &Event, lines: &[UsageLine]) {
        if self.breach.is_none() {
            self.breach = self.auditor.observe(state, event, lines).err();
        }
    }
}

fn audited(pods: &[u8], nodes: &[u8]) -> Report {
    let mut watch = Watch::default();
    let request = Request {
        trace: pods,
        fleet: Some(Fleet::Nodes(nodes)),
        mode: Some(Mode::Schedule),
    };
    let report = run_watched(&request, &mut watch).expect("the trace is known");
    assert_eq!(watch.breach, None);
    assert!(watch.auditor.events > 0);
    println!("{report}");
    report
}

/// The header and every third node.
fn a_third(nodes: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(nodes).expect("the node list is text");
    let kept = text
        .lines()
        .enumerate()
        .filter(|(line, _)| *line == 0 || line % 3 == 1);
    kept.flat_map(|(_, line)| [line.as_bytes(), b"\n"].concat())
        .collect()
}

const PODS: &str = "alibaba-gpu-v2023/openb_pod_list_default.csv";
const NODES: &str = "alibaba-gpu-v2023/openb_node_list_gpu_node.csv";

#[test]
fn every_pod_of_the_default_list_runs_on_its_1213_nodes() {
    let name = "every_pod_of_the_default_list_runs_on_its_1213_nodes";
    let (Some(pods), Some(nodes)) = (data(name, PODS), data(name, NODES)) else {
        return;
    };
    let report = audited(&pods, &nodes);
    assert_eq!(
        (
            report.value("jobs"),
            report.value("left waiting"),
            report.value("can never run")
        ),
        ("8152", "0", "0")
    );
    assert_eq!(report.value("refused commands"), "");
}

#[test]
fn on_a_third_of_the_nodes_pods_wait_and_the_list_runs_to_its_end() {
    let name = "on_a_third_of_the_nodes_pods_wait_and_the_list_runs_to_its_end";
    let (Some(pods), Some(nodes)) = (data(name, PODS), data(name, NODES)) else {
        return;
    };
    let report = audited(&pods, &a_third(&nodes));
    assert_eq!(
        (
            report.value("jobs"),
            report.value("left waiting"),
            report.value("can never run")
        ),
        ("8152", "0", "0")
    );
    assert_ne!(report.value("wait p95"), "0.000 s");
}
