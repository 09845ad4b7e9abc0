//! Figures of the engine task for `/metrics` and `/readyz`.

use crate::store::Obstacle;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

/// Upper bounds of the histograms' buckets, in microseconds.
const BUCKETS: [u64; 8] = [250, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000];

/// Counts by size.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; 8],
    count: AtomicU64,
    sum_micros: AtomicU64,
    last_micros: AtomicU64,
}

impl Histogram {
    fn note(&self, micros: u64) {
        for (bound, bucket) in BUCKETS.iter().zip(&self.buckets) {
            if micros <= *bound {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
        self.last_micros.store(micros, Ordering::Relaxed);
    }

    /// Prometheus text, in seconds.
    pub(crate) fn text(&self, name: &str, help: &str) -> String {
        let seconds = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let mut text = format!("# HELP {name} {help}\n# TYPE {name} histogram\n");
        for (bound, bucket) in BUCKETS.iter().zip(&self.buckets) {
            let n = bucket.load(Ordering::Relaxed);
            text.push_str(&format!(
                "{name}_bucket{{le=\"{}\"}} {n}\n",
                seconds(*bound)
            ));
        }
        let count = self.count.load(Ordering::Relaxed);
        text.push_str(&format!("{name}_bucket{{le=\"+Inf\"}} {count}\n"));
        text.push_str(&format!(
            "{name}_sum {}\n",
            seconds(self.sum_micros.load(Ordering::Relaxed))
        ));
        text.push_str(&format!("{name}_count {count}\n"));
        let last = seconds(self.last_micros.load(Ordering::Relaxed));
        text.push_str(&format!(
            "# HELP {name}_last The last one.\n# TYPE {name}_last gauge\n{name}_last {last}\n"
        ));
        text
    }
}

/// Figures of the engine task.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    stopped: watch::Sender<bool>,
    /// What the engine waits for, while it stands.
    standing: watch::Sender<Option<Obstacle>>,
    /// The last entry to which the engine has nothing more to say.
    settled: watch::Sender<u64>,
    /// Why it ended by itself.
    fault: OnceLock<String>,
    /// Time of cycles: planning, beside the writer.
    pub(crate) cycle: Histogram,
    /// Time of commits.
    pub(crate) commit: Histogram,
    /// Entries written.
    pub(crate) entries: AtomicU64,
}

impl Gauges {
    /// The engine takes nothing any more.
    pub(crate) fn stop(&self) {
        self.stopped.send_replace(true);
    }
    /// The engine ends by itself, for good.
    pub(crate) fn fail(&self, why: String) {
        // The first word is the one that counts.
        drop(self.fault.set(why));
        self.stop();
    }
    /// Why the engine has ended by itself.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.get().map(String::as_str)
    }
    /// The engine waits for something, or (`None`) goes on.
    pub(crate) fn stand(&self, obstacle: Option<Obstacle>) {
        self.standing.send_replace(obstacle);
    }
    /// The engine has nothing more to say to what is on record up to this entry.
    pub(crate) fn settle(&self, seq: u64) {
        self.settled.send_replace(seq);
    }
    /// Returns once that is so of this entry, or the engine stands or has ended.
    pub(crate) async fn settled(&self, seq: u64) {
        let (mut settled, mut standing) = (self.settled.subscribe(), self.standing.subscribe());
        tokio::select! {
            // Their senders are here, so the waits do not fail.
            settled = settled.wait_for(|at| *at >= seq) => drop(settled),
            stands = standing.wait_for(Option::is_some) => drop(stands),
            () = self.stopped() => {}
        }
    }
    /// What the engine waits for.
    pub(crate) fn standing(&self) -> Option<Obstacle> {
        *self.standing.borrow()
    }
    /// Returns once the engine stands, or once it goes on.
    #[cfg(test)]
    pub(crate) async fn until_standing(&self, is: bool) {
        let mut standing = self.standing.subscribe();
        drop(standing.wait_for(|obstacle| obstacle.is_some() == is).await);
    }
    /// True while the engine runs.
    pub(crate) fn running(&self) -> bool {
        !*self.stopped.borrow()
    }
    /// Returns once the engine takes nothing any more.
    pub(crate) async fn stopped(&self) {
        // Its sender is here, so the wait does not fail.
        drop(self.stopped.subscribe().wait_for(|stopped| *stopped).await);
    }
    /// One cycle.
    pub(crate) fn note_cycle(&self, micros: u64) {
        self.cycle.note(micros);
    }
    /// One commit.
    pub(crate) fn note_commit(&self, micros: u64, entries: u64) {
        self.commit.note(micros);
        self.entries.fetch_add(entries, Ordering::Relaxed);
    }
}
