//! Figures of the engine task for `/metrics` and `/readyz`.

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
    /// Time of batches that planned: deciding and planning, without writing.
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
    /// True while the engine takes commands.
    pub(crate) fn running(&self) -> bool {
        !*self.stopped.borrow()
    }
    /// Returns once the engine takes nothing any more.
    pub(crate) async fn stopped(&self) {
        // Its sender is here, so the wait does not fail.
        drop(self.stopped.subscribe().wait_for(|stopped| *stopped).await);
    }
    /// Cycles of one batch, and how long the batch took; each is counted with their mean.
    pub(crate) fn note_cycles(&self, cycles: u32, micros: u64) {
        for _ in 0..cycles {
            self.cycle.note(micros / u64::from(cycles));
        }
    }
    /// One commit.
    pub(crate) fn note_commit(&self, micros: u64, entries: u64) {
        self.commit.note(micros);
        self.entries.fetch_add(entries, Ordering::Relaxed);
    }
}
