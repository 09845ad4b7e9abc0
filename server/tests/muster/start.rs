//! The first start, and its end.

use crate::harness::{DEADLINE, muster};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;

#[test]
fn a_first_start_can_be_stopped_while_it_makes_its_history() {
    let folder = tempfile::tempdir().expect("a folder");
    // More days than any machine makes while somebody waits.
    let mut child = muster()
        .args([
            "demo",
            "--addr",
            "127.0.0.1:0",
            "--history-days",
            "30000",
            "--data",
        ])
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("muster starts");
    let told = BufReader::new(child.stderr.take().expect("its standard error"));
    let progress = told
        .lines()
        .map_while(Result::ok)
        .find(|line| line.contains("of 30000"));
    assert!(progress.is_some(), "it says how far it is");
    let stopped = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .expect("kill runs");
    assert!(stopped.success());
    let id = child.id();
    let (end, ended) = mpsc::channel();
    let waiting = std::thread::spawn(move || end.send(child.wait()));
    let status = ended.recv_timeout(DEADLINE);
    if status.is_err() {
        // It must not go on after the test.
        drop(
            Command::new("kill")
                .args(["-KILL", &id.to_string()])
                .status(),
        );
    }
    drop(waiting.join());
    let status = status
        .expect("it ends when it is told to")
        .expect("a status");
    assert!(status.success(), "{status}");
}
