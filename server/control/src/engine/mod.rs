//! The engine task: one writer. It takes commands from a bounded mailbox and due items from its executor, decides, writes
//! everything of a batch in one transaction, and only then publishes and answers.
//!
//! Cycles are planned beside the writer, on another thread, on a state that stays as it is. Commands that come meanwhile are
//! decided, written and answered as ever, at the cycle's own time; the plan is then carried out if it still stands
//! ([`scheduler::Plan::stands`]), and made anew if not, with the doors shut for that once, so that it is not put off for ever.

mod claims;
mod core;
mod live;
mod planning;
pub(crate) mod record;
mod recorder;
mod resume;

pub(crate) use self::core::{ARRIVALS, Ahead, Arrivals, Batch, Core, Folded};
pub(crate) use live::{Live, Published};
pub(crate) use recorder::{Recorder, day_key};
pub(crate) use resume::{
    Damage, fold_from_snapshot, hash_of, hex, is_sealed, open_snapshot, prove, resume, seal_of,
    snapshot_of,
};

use self::planning::Planning;
use crate::clock::{Clock, Stopwatch};
use crate::gauges::Gauges;
use crate::store::{KeyedSubmit, Obstacle, StoreError, Transaction, Writer};
use crate::{Change, ServiceError};
use scheduler::{Command, JobId, Millis, PersonId, Refusal, State};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// Commands that may wait; one more is refused.
pub(crate) const MAILBOX: usize = 1_024;
/// Commands of one transaction.
const ASKS_MAX: usize = 256;
/// Entries of one transaction, give or take a moment.
const ENTRIES_MAX: usize = 2_000;
/// Entries from one snapshot to the next: what a start folds at most, a second's work.
const SNAPSHOT_EVERY: u64 = 50_000;

/// How long the engine stands before it tries to write again.
const TRY_AGAIN: Duration = Duration::from_millis(500);

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
    /// The store takes nothing now, and that can pass.
    Standing(Obstacle),
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
            EngineError::Standing(obstacle) => Self::Standing(obstacle.to_owned()),
            EngineError::Stopped => Self::Internal("the engine task has stopped".into()),
        }
    }
}

/// Tells all who wait in the mailbox.
fn refuse_all(mailbox: &mut mpsc::Receiver<Ask>, why: &EngineError) {
    while let Ok(ask) = mailbox.try_recv() {
        drop(ask.answer.send(Err(why.clone())));
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
    /// Numbers of the last entry and usage line that are written, and the open claims then.
    pub(crate) durable: Recorder,
    /// Answers that wait for a cycle.
    pub(crate) replies: Replies,
    /// What is wrong with the journal before the snapshot that the start began with, once that is found.
    pub(crate) damage: Option<oneshot::Receiver<StoreError>>,
}

/// Waits for word of a damage; for ever when there is none.
async fn told(damage: &mut Option<oneshot::Receiver<StoreError>>) -> StoreError {
    if let Some(word) = damage
        && let Ok(error) = word.await
    {
        return error;
    }
    *damage = None;
    std::future::pending().await
}

type Reply = Result<Done, EngineError>;
type Address = oneshot::Sender<Reply>;

/// Answers of what is durable already, and waits for a cycle: who changes something then sees what it led to. A submission
/// does not wait, since work comes in at any rate; what shows a job waits until it was looked at
/// ([`crate::Control::looked_at`]).
#[derive(Debug, Default)]
pub(crate) struct Replies {
    /// For the next cycle that begins.
    next: Vec<(Address, Reply)>,
    /// A cycle has seen it, and is being written.
    seen: Vec<(Address, Reply)>,
}

impl Replies {
    fn send(replies: &mut Vec<(Address, Reply)>) {
        for (address, reply) in replies.drain(..) {
            // A caller that went away is no concern: what it asked is done.
            drop(address.send(reply));
        }
    }
}

/// Says that the engine has ended, however it did. A panic says nothing by itself: whoever waits for the engine would wait
/// for ever, and the server would stay up without it.
struct Ending(Arc<Gauges>);

impl Drop for Ending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "the engine panicked, the log says where; what was answered is on record: start again";
            self.0.fail(why.to_owned());
        }
        self.0.stop();
    }
}

impl Engine {
    /// Runs until it is told to close, or until a write fails for good.
    pub(crate) async fn run(
        mut self,
        mut mailbox: mpsc::Receiver<Ask>,
        mut closing: watch::Receiver<bool>,
    ) {
        let _ending = Ending(Arc::clone(&self.gauges));
        let mut asks = Vec::new();
        let due = self.due();
        self.clock.worked_off_until(due);
        loop {
            let due = self.due();
            tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => break,
                damage = told(&mut self.damage) => {
                    // On record before the damage was found; no cycle comes that would answer them.
                    Replies::send(&mut self.replies.next);
                    return self.fail(&damage, mailbox);
                }
                n = mailbox.recv_many(&mut asks, ASKS_MAX) => if n == 0 { break },
                () = self.clock.wait_until(due) => {}
            }
            if let Err(error) = self.turn(&mut asks, &mut mailbox).await
                && let Err(error) = self.stand(error, &mut mailbox, &mut closing).await
            {
                return self.fail(&error, mailbox);
            }
        }
        // What was let in is done before the end.
        mailbox.close();
        while self.gauges.standing().is_none() && mailbox.recv_many(&mut asks, ASKS_MAX).await > 0 {
            if let Err(error) = self.turn(&mut asks, &mut mailbox).await
                && let Err(error) = self.stand(error, &mut mailbox, &mut closing).await
            {
                return self.fail(&error, mailbox);
            }
        }
        // On record, and no cycle comes that would answer them.
        Replies::send(&mut self.replies.next);
        refuse_all(&mut mailbox, &EngineError::Stopped);
        self.gauges.stop();
        self.leave().await;
    }

    /// The end: a snapshot, so that the next start has less to fold. Never of a state that is ahead of the disk.
    async fn leave(mut self) {
        if self.gauges.standing().is_none()
            && let Err(error) = self.write_snapshot().await
        {
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

    /// A fault that stays. The working state is ahead of the disk: never go on from it.
    fn fail(&self, error: &StoreError, mut mailbox: mpsc::Receiver<Ask>) {
        let way_out = error.way_out();
        tracing::error!(
            error = error as &dyn std::error::Error,
            "the journal cannot be gone on with: nothing is taken any more"
        );
        mailbox.close();
        refuse_all(&mut mailbox, &EngineError::Stopped);
        let cause = std::error::Error::source(error);
        let cause = cause.map_or_else(String::new, |cause| format!(" ({cause})"));
        self.gauges.fail(format!("{error}{cause}: {way_out}"));
    }

    /// Waits, with the engine standing, until the store takes something again, and goes on from what is on record. Whoever
    /// asks meanwhile is told to come again. Returns early when it is told to close; fails when waiting does not help.
    async fn stand(
        &mut self,
        mut error: StoreError,
        mailbox: &mut mpsc::Receiver<Ask>,
        closing: &mut watch::Receiver<bool>,
    ) -> Result<(), StoreError> {
        let mut told = None;
        loop {
            let Some(obstacle) = error.obstacle() else {
                return Err(error);
            };
            if told.replace(obstacle) != Some(obstacle) {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    obstacle,
                    "nothing can be written; the engine stands until it can"
                );
            }
            self.gauges.stand(Some(obstacle));
            refuse_all(mailbox, &EngineError::Standing(obstacle));
            tokio::select! {
                biased;
                _ = closing.wait_for(|closing| *closing) => return Ok(()),
                () = tokio::time::sleep(TRY_AGAIN) => {}
            }
            match self.go_back().await {
                Ok(()) => break,
                Err(next) => error = next,
            }
        }
        // The fleet's time stood, too, and nobody is shown an earlier one than before.
        self.clock.hold_back(self.clock.now());
        tracing::warn!("what is decided can be written again; the engine goes on");
        self.gauges.stand(None);
        Ok(())
    }

    /// Back to what is on record. A commit whose answer was an error may be on disk all the same: it is then published, and
    /// counts.
    async fn go_back(&mut self) -> Result<(), StoreError> {
        self.writer.reopen().await?;
        let (seq, line) = self.writer.ends().await?;
        if seq < self.durable.seq || line < self.durable.line {
            return Err(StoreError::Replaced {
                found: seq,
                written: self.durable.seq,
            });
        }
        let entries = self.writer.entries_after(self.durable.seq).await?;
        let progress = self.writer.fact(ARRIVALS).await?;
        (self.durable.seq, self.durable.line) = (seq, line);
        for entry in &entries {
            // Their rows are written already.
            self.durable
                .claims
                .note(&entry.event, &mut Transaction::default());
        }
        if !entries.is_empty() {
            self.published.advance(&entries, None);
            drop(self.changes.send(Change { seq }));
        }
        self.core
            .go_back(&self.published.read(), self.durable.clone(), progress);
        Ok(())
    }

    /// When something is to be done: at once, if a door's wish is left.
    fn due(&mut self) -> Option<Millis> {
        match self.core.is_asked() {
            true => Some(self.core.state.at),
            false => self.core.due(),
        }
    }

    /// What is due, then what was asked, then the cycle that answers it; all of it written, published and answered.
    async fn turn(
        &mut self,
        asks: &mut Vec<Ask>,
        mailbox: &mut mpsc::Receiver<Ask>,
    ) -> Result<(), StoreError> {
        let done = self.do_turn(asks, mailbox).await;
        Replies::send(&mut self.replies.seen);
        if let Err(error) = &done {
            // Theirs is durable, whatever became of the cycle.
            Replies::send(&mut self.replies.next);
            let refused = error
                .obstacle()
                .map_or(EngineError::Stopped, EngineError::Standing);
            for ask in asks.drain(..) {
                drop(ask.answer.send(Err(refused.clone())));
            }
        }
        done
    }

    async fn do_turn(
        &mut self,
        asks: &mut Vec<Ask>,
        mailbox: &mut mpsc::Receiver<Ask>,
    ) -> Result<(), StoreError> {
        let now = self.clock.hand();
        let mut batch = Batch::default();
        let mut caught_up = self.work_off(now, asks, mailbox, &mut batch).await?;
        if !asks.is_empty() {
            let at = match caught_up {
                true => now.max(self.core.state.at),
                false => self.core.state.at,
            };
            self.serve(asks, at, &mut batch).await?;
        }
        if caught_up && self.core.settle() {
            let at = self.core.state.at;
            caught_up = self.work_off(at, asks, mailbox, &mut batch).await?;
        }
        self.write(&mut batch).await?;
        let due = self.due();
        self.clock.worked_off_until(due);
        if !caught_up {
            self.clock.hold_back(self.core.state.at);
        } else if !self.core.is_asked() {
            self.gauges.settle(self.durable.seq);
        }
        if self.core.recorder.seq >= self.snapshot + SNAPSHOT_EVERY {
            self.write_snapshot().await?;
        }
        Ok(())
    }

    /// Takes what is due by `until`, with the cycles that it calls for. True when nothing of it is left.
    async fn work_off(
        &mut self,
        until: Millis,
        asks: &mut Vec<Ask>,
        mailbox: &mut mpsc::Receiver<Ask>,
        batch: &mut Batch,
    ) -> Result<bool, StoreError> {
        loop {
            match self.core.advance(until, ENTRIES_MAX, batch) {
                Ahead::Nothing => return Ok(true),
                Ahead::More => return Ok(false),
                Ahead::Cycle(at) => self.cycle(at, asks, mailbox, batch).await?,
            }
        }
    }

    /// One cycle, planned beside the writer. Time stands while it is: whatever is asked meanwhile is done at the cycle's time.
    async fn cycle(
        &mut self,
        at: Millis,
        asks: &mut Vec<Ask>,
        mailbox: &mut mpsc::Receiver<Ask>,
        batch: &mut Batch,
    ) -> Result<(), StoreError> {
        let base = self.begin_cycle();
        let mut planning = Planning::begin(Arc::clone(&base), at);
        let mut open = true;
        let plan = loop {
            if !asks.is_empty() {
                self.serve(asks, at.max(self.core.state.at), batch).await?;
            }
            tokio::select! {
                biased;
                plan = planning.end(&self.gauges) => break plan,
                n = mailbox.recv_many(asks, ASKS_MAX), if open => open = n > 0,
            }
        };
        if !self.core.planned(plan, base, batch) {
            let base = self.begin_cycle();
            let mut planning = Planning::begin(Arc::clone(&base), at);
            let plan = planning.end(&self.gauges).await;
            self.core.planned(plan, base, batch);
        }
        Ok(())
    }

    /// A cycle begins, and every answer that waited for one is its own now: also that of a cycle made anew, which answers what
    /// overtook the first.
    fn begin_cycle(&mut self) -> Arc<State> {
        let Replies { next, seen } = &mut self.replies;
        seen.append(next);
        self.core.begin_cycle()
    }

    /// Decides what was asked, at one time, writes it with all that was gathered before, and answers.
    async fn serve(
        &mut self,
        asks: &mut Vec<Ask>,
        at: Millis,
        batch: &mut Batch,
    ) -> Result<(), StoreError> {
        let replies = self.take_all(asks, at, batch).await?;
        self.write(batch).await?;
        let waits = self.core.is_asked();
        for (ask, reply) in asks.drain(..).zip(replies) {
            let submits = matches!(ask.command, Command::Submit { .. });
            if waits && reply.is_ok() && !submits {
                self.replies.next.push((ask.answer, reply));
            } else {
                // A caller that went away is no concern: what it asked is done.
                drop(ask.answer.send(reply));
            }
        }
        Ok(())
    }

    /// Writes what was gathered, and publishes it.
    async fn write(&mut self, batch: &mut Batch) -> Result<(), StoreError> {
        self.core.note_progress(batch);
        self.commit(batch).await?;
        self.publish(std::mem::take(batch));
        Ok(())
    }

    async fn take_all(
        &mut self,
        asks: &[Ask],
        at: Millis,
        batch: &mut Batch,
    ) -> Result<Vec<Reply>, StoreError> {
        let mut replies = Vec::with_capacity(asks.len());
        for ask in asks {
            replies.push(self.take(ask, at, batch).await?);
        }
        Ok(replies)
    }

    async fn take(
        &mut self,
        ask: &Ask,
        at: Millis,
        batch: &mut Batch,
    ) -> Result<Reply, StoreError> {
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
        let Recorder { seq, line, claims } = &self.core.recorder;
        (self.durable.seq, self.durable.line) = (*seq, *line);
        if !batch.write.claims.is_empty() {
            self.durable.claims = claims.clone();
        }
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
        let snapshot = snapshot_of(&self.core.state, &self.core.meter, &self.core.recorder)?;
        self.writer.keep_snapshot(&snapshot).await?;
        self.snapshot = self.core.recorder.seq;
        Ok(())
    }
}
