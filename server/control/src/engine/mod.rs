//! The engine task: one writer. It takes commands from a bounded mailbox and due items from its executor, decides, writes
//! everything of a batch in one transaction, and only then publishes and answers.

mod core;
mod live;
pub(crate) mod record;
mod recorder;
mod resume;

pub(crate) use self::core::{ARRIVALS, Arrivals, Batch, Core, Folded};
pub(crate) use live::{Live, Published};
pub(crate) use recorder::{Recorder, day_key};
pub(crate) use resume::{
    Damage, fold_from_snapshot, hash_of, hex, open_snapshot, resume, snapshot_of,
};

use crate::clock::{Clock, Stopwatch};
use crate::gauges::Gauges;
use crate::store::{KeyedSubmit, StoreError, Writer};
use crate::{Change, ServiceError};
use scheduler::{Command, JobId, PersonId, Refusal};
use std::sync::Arc;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// Commands that may wait; one more is refused.
pub(crate) const MAILBOX: usize = 1_024;
/// Commands of one transaction.
const ASKS_MAX: usize = 256;
/// Entries of one transaction, give or take a moment.
const ENTRIES_MAX: usize = 2_000;
/// Entries from one snapshot to the next: what a start folds at most, a second's work.
const SNAPSHOT_EVERY: u64 = 50_000;

/// A command with its answer's address.
pub(crate) struct Ask {
    /// What is asked.
    pub(crate) command: Command,
    /// For a submission: the caller's key, and the hash of the request.
    pub(crate) key: Option<(String, String)>,
    /// Where the answer goes.
    pub(crate) answer: oneshot::Sender<Result<Done, EngineError>>,
}

/// A command was taken, and is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// For a submission: the job.
    pub(crate) job: Option<JobId>,
    /// The key had made the job before.
    pub(crate) repeated: bool,
}

/// A command was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EngineError {
    /// The engine says no.
    Refused(Refusal),
    /// The key belongs to another request.
    KeyReused,
    /// The store broke: nothing is taken any more.
    Stopped,
}

impl From<EngineError> for ServiceError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Refused(Refusal::Invalid { field, problem }) => {
                Self::Invalid(vec![contract::FieldError::new(&field, problem)])
            }
            EngineError::Refused(refusal) => Self::Conflict(refusal.to_string()),
            EngineError::KeyReused => Self::KeyReused,
            EngineError::Stopped => Self::Internal("the engine task has stopped".into()),
        }
    }
}

/// The task with all that it owns.
pub(crate) struct Engine {
    /// Working state.
    pub(crate) core: Core,
    /// The one writer.
    pub(crate) writer: Writer,
    /// What readers see.
    pub(crate) published: Published,
    /// The fleet's time.
    pub(crate) clock: Clock,
    /// Figures for `/metrics`.
    pub(crate) gauges: Arc<Gauges>,
    /// Tells open screens to look again.
    pub(crate) changes: broadcast::Sender<Change>,
    /// The last snapshot's entry.
    pub(crate) snapshot: u64,
}

type Reply = (
    oneshot::Sender<Result<Done, EngineError>>,
    Result<Done, EngineError>,
);

impl Engine {
    /// Runs until it is told to close, or until a write fails.
    pub(crate) async fn run(
        mut self,
        mut mailbox: mpsc::Receiver<Ask>,
        mut closing: watch::Receiver<bool>,
    ) {
        let mut asks = Vec::new();
        self.clock.worked_off_until(self.core.due());
        loop {
            let due = self.core.due();
            tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => break,
                n = mailbox.recv_many(&mut asks, ASKS_MAX) => if n == 0 { break },
                () = self.clock.wait_until(due) => {}
            }
            if let Err(error) = self.turn(&mut asks).await {
                self.fail(&error, mailbox);
                return;
            }
        }
        // What was let in is done before the end.
        mailbox.close();
        while mailbox.recv_many(&mut asks, ASKS_MAX).await > 0 {
            if let Err(error) = self.turn(&mut asks).await {
                self.fail(&error, mailbox);
                return;
            }
        }
        self.gauges.stop();
        if let Err(error) = self.write_snapshot().await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "no snapshot at the end; the journal is whole"
            );
        }
        if let Err(error) = self.writer.close().await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the database did not close; it is whole"
            );
        }
    }

    /// The working state is ahead of the disk: never go on from it.
    fn fail(&self, error: &StoreError, mut mailbox: mpsc::Receiver<Ask>) {
        tracing::error!(
            error = error as &dyn std::error::Error,
            "the journal cannot be written: nothing is taken any more"
        );
        self.gauges.stop();
        mailbox.close();
        while let Ok(ask) = mailbox.try_recv() {
            drop(ask.answer.send(Err(EngineError::Stopped)));
        }
    }

    /// One batch: what is due, then what was asked, then one transaction, then the answers.
    async fn turn(&mut self, asks: &mut Vec<Ask>) -> Result<(), StoreError> {
        let now = self.clock.hand();
        let watch = Stopwatch::start();
        let mut batch = Batch::default();
        let caught_up = self.core.advance(now, ENTRIES_MAX, &mut batch);
        let at = if caught_up {
            now.max(self.core.state.at)
        } else {
            self.core.state.at
        };
        let replies = self.take_all(asks, at, &mut batch).await;
        self.gauges.note_cycles(batch.cycles, watch.micros());
        let replies = replies?;
        self.core.note_progress(&mut batch);
        if let Err(error) = self.commit(&batch).await {
            for (answer, _) in replies {
                drop(answer.send(Err(EngineError::Stopped)));
            }
            return Err(error);
        }
        self.publish(batch);
        self.clock.worked_off_until(self.core.due());
        for (answer, result) in replies {
            // A caller that went away is no concern: what it asked is done.
            drop(answer.send(result));
        }
        if !caught_up {
            self.clock.hold_back(self.core.state.at);
        }
        if self.core.recorder.seq >= self.snapshot + SNAPSHOT_EVERY {
            self.write_snapshot().await?;
        }
        Ok(())
    }

    async fn take_all(
        &mut self,
        asks: &mut Vec<Ask>,
        at: scheduler::Millis,
        batch: &mut Batch,
    ) -> Result<Vec<Reply>, StoreError> {
        let mut replies = Vec::with_capacity(asks.len());
        for ask in asks.drain(..) {
            let result = self.take(&ask, at, batch).await?;
            replies.push((ask.answer, result));
        }
        if !replies.is_empty() {
            self.core.settle(at, batch);
        }
        Ok(replies)
    }

    async fn take(
        &mut self,
        ask: &Ask,
        at: scheduler::Millis,
        batch: &mut Batch,
    ) -> Result<Result<Done, EngineError>, StoreError> {
        let keyed = match (&ask.key, &ask.command) {
            (Some((key, hash)), Command::Submit { owner, .. }) => Some((owner, key, hash)),
            _ => None,
        };
        if let Some((person, key, hash)) = keyed
            && let Some((earlier, job)) = self.earlier(person, key, batch).await?
        {
            return Ok(match earlier == *hash {
                true => Ok(Done {
                    job: Some(job),
                    repeated: true,
                }),
                false => Err(EngineError::KeyReused),
            });
        }
        if let Err(refusal) = self.core.take(&ask.command, at, batch) {
            return Ok(Err(EngineError::Refused(refusal)));
        }
        let job = match &ask.command {
            Command::Submit { .. } => Some(JobId(self.core.state.counts.submitted)),
            _ => None,
        };
        if let (Some((person, key, hash)), Some(job)) = (keyed, job) {
            batch.write.keys.push(KeyedSubmit {
                person: person.clone(),
                key: key.clone(),
                hash: hash.clone(),
                job,
            });
        }
        Ok(Ok(Done {
            job,
            repeated: false,
        }))
    }

    /// What a key has made, in this batch or before it.
    async fn earlier(
        &mut self,
        person: &PersonId,
        key: &str,
        batch: &Batch,
    ) -> Result<Option<(String, JobId)>, StoreError> {
        let in_batch = batch
            .write
            .keys
            .iter()
            .find(|kept| kept.person == *person && kept.key == key);
        match in_batch {
            Some(kept) => Ok(Some((kept.hash.clone(), kept.job))),
            None => self.writer.submission(person, key).await,
        }
    }

    async fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if batch.is_empty() {
            return Ok(());
        }
        let watch = Stopwatch::start();
        self.writer.commit(&batch.write).await?;
        self.gauges
            .note_commit(watch.micros(), batch.write.entries.len() as u64);
        Ok(())
    }

    fn publish(&self, batch: Batch) {
        let waiting = batch.planned.then(|| Arc::clone(&self.core.waiting));
        if batch.is_empty() && waiting.is_none() {
            return;
        }
        self.published.advance(&batch.write.entries, waiting);
        // Nobody listening is no fault.
        drop(self.changes.send(Change {
            seq: self.core.recorder.seq,
        }));
    }

    async fn write_snapshot(&mut self) -> Result<(), StoreError> {
        if self.core.recorder.seq == self.snapshot {
            return Ok(());
        }
        let snapshot = snapshot_of(&self.core.state, &self.core.meter, self.core.recorder.seq)?;
        self.writer.keep_snapshot(&snapshot).await?;
        self.snapshot = self.core.recorder.seq;
        Ok(())
    }
}
