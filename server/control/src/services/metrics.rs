//! Figures for Prometheus.

use super::Answer;
use crate::Control;
use crate::engine::MAILBOX;
use crate::views::fleet;
use contract::JobState;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

impl Control {
    /// Prometheus text.
    pub async fn metrics(&self) -> Answer<String> {
        let mut text = String::with_capacity(8_192);
        self.write_state(&mut text);
        let (entry, hash) = self.resumed();
        gauge(
            &mut text,
            "muster_resumed_entry",
            "The journal's last entry when this process began, with the hash of the state then.",
            &[(&format!("{{state_hash=\"{hash}\"}}"), entry)],
        );
        let gauges = &self.inner.gauges;
        let waiting = MAILBOX - self.inner.mailbox.capacity();
        gauge(
            &mut text,
            "muster_mailbox_depth",
            "Commands that wait for the engine.",
            &[("", waiting as u64)],
        );
        let entries = gauges.entries.load(Ordering::Relaxed);
        text.push_str("# HELP muster_journal_entries_total Entries written since the start.\n");
        text.push_str("# TYPE muster_journal_entries_total counter\n");
        let _ = writeln!(text, "muster_journal_entries_total {entries}");
        text.push_str(&gauges.cycle.text(
            "muster_cycle_seconds",
            "Time of one cycle with the deciding around it.",
        ));
        text.push_str(&gauges.commit.text(
            "muster_commit_seconds",
            "Time of one commit to the journal.",
        ));
        Ok(text)
    }

    fn write_state(&self, text: &mut String) {
        let live = self.inner.published.read();
        let mut jobs: BTreeMap<&str, u64> = JobState::ALL
            .iter()
            .map(|state| (state.as_str(), 0))
            .collect();
        for job in live.state.jobs.values() {
            *jobs
                .entry(crate::engine::record::state_of(job).as_str())
                .or_default() += 1;
        }
        let counts = live.state.counts;
        jobs.insert(JobState::Succeeded.as_str(), counts.succeeded);
        jobs.insert(JobState::Failed.as_str(), counts.failed);
        jobs.insert(JobState::Cancelled.as_str(), counts.cancelled);
        jobs.insert(JobState::TimedOut.as_str(), counts.timed_out);
        let jobs: Vec<(String, u64)> = jobs
            .into_iter()
            .map(|(state, n)| (format!("{{state=\"{state}\"}}"), n))
            .collect();
        gauge(text, "muster_jobs", "Jobs by state.", &borrowed(&jobs));

        let view = fleet::fleet(&live, live.state.at, 1);
        let mut gpus = Vec::new();
        for flavour in &view.flavours {
            let uses = [
                ("busy", flavour.busy),
                ("free", flavour.free),
                ("spare", flavour.spare),
                ("notebook", flavour.notebook),
                ("broken", flavour.broken),
            ];
            for (use_of, n) in uses {
                // Thousandths are cut off: a gauge is no bill.
                gpus.push((
                    format!("{{flavour=\"{}\",use=\"{use_of}\"}}", flavour.flavour),
                    n.0.whole(),
                ));
            }
        }
        gauge(
            text,
            "muster_gpus",
            "GPUs by flavour and use, whole ones.",
            &borrowed(&gpus),
        );
        gauge(
            text,
            "muster_journal_seq",
            "Number of the journal's last entry.",
            &[("", live.seq)],
        );
        gauge(
            text,
            "muster_fleet_time_seconds",
            "The fleet's clock.",
            &[("", live.state.at.0 / 1_000)],
        );
        gauge(
            text,
            "muster_ready",
            "1 while commands are taken.",
            &[("", u64::from(self.ready()))],
        );
    }
}

fn borrowed(rows: &[(String, u64)]) -> Vec<(&str, u64)> {
    rows.iter()
        .map(|(labels, n)| (labels.as_str(), *n))
        .collect()
}

fn gauge(text: &mut String, name: &str, help: &str, rows: &[(&str, u64)]) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
    for (labels, n) in rows {
        let _ = writeln!(text, "{name}{labels} {n}");
    }
}
