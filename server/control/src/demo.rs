//! The demo: a fleet, its people and a month of history, made once from a seed; then life goes on from there.
//!
//! The history is the simulation's ([`simulation::demo::history`]), written as the engine task writes. Its times are
//! fixed, so that two demos of one seed are equal to the byte whenever they are made.

use crate::control::{Ground, damaged};
use crate::data::DataFolder;
use crate::engine::{ARRIVALS, Arrivals, Folded, Recorder, resume, snapshot_of};
use crate::store::{Kept, MADE_FOR, Store, Transaction, Writer};
use crate::{OnProgress, OpenError, Progress, Tuning};
use contract::{Membership, PersonView, Role};
use scheduler::{Command, Event, Fact, Job, JobId, Millis, Refusal, State, UsageLine};
use simulation::demo::{DemoRole, Workload, demo_people, is_wanted};
use simulation::driver::{self, Sink};
use std::collections::BTreeMap;
use std::iter::Peekable;
use tokio::sync::mpsc;

/// When the demo's fleet was put in service, and its history begins: 2026-10-20T06:00:00Z. Thirty days later a month has
/// ended and the next one is half over.
const EPOCH: Millis = Millis(1_792_476_000_000);
/// Entries of one transaction while history is made.
const ENTRIES_MAX: usize = 20_000;
/// The value of [`MADE_FOR`] once the history is whole.
const DEMO: &str = "demo";
/// Its value until then: nobody was told anything that is in it.
const UNFINISHED: &str = "demo, unfinished";
/// The fact that keeps the seed.
const SEED: &str = "seed";

/// The folder's demo, made now if it is not there.
pub(crate) async fn prepare(
    folder: &DataFolder,
    seed: u64,
    fresh: bool,
    tuning: &Tuning,
) -> Result<Ground, OpenError> {
    if fresh && folder.holds_a_database() {
        check_wipable(folder).await?;
        folder.wipe()?;
    }
    let mut store = folder.store().await?;
    match store.fact(MADE_FOR).await?.as_deref() {
        Some(DEMO) => return go_on(folder, store, seed, tuning).await,
        Some(UNFINISHED) => {
            store.close().await;
            folder.wipe()?;
            store = folder.store().await?;
        }
        Some(_) => {
            return Err(OpenError::DataFolder {
                path: folder.path().display().to_string(),
                problem: "it holds a fleet that is not the demo's".to_owned(),
            });
        }
        None => {}
    }
    make(folder, store, seed, tuning).await
}

/// Lets through what `fresh` may forget: an earlier demo, or a database that nothing was written to. Nothing is changed by
/// looking, whatever version it is of.
async fn check_wipable(folder: &DataFolder) -> Result<(), OpenError> {
    let refused = |problem: &str| OpenError::DataFolder {
        path: folder.path().display().to_string(),
        problem: format!("--fresh forgets demos only, and {problem}"),
    };
    let unknown = |_| refused("what is in it cannot be read");
    let store = Store::attach(folder.path()).await.map_err(unknown)?;
    let kept = store.kept().await;
    store.close().await;
    match kept.map_err(unknown)? {
        Kept::Nothing => Ok(()),
        Kept::Unmarked => Err(refused("nothing in it says that it is one")),
        Kept::For(mark) if mark == DEMO || mark == UNFINISHED => Ok(()),
        Kept::For(_) => Err(refused("it holds a fleet that is not the demo's")),
    }
}

async fn go_on(
    folder: &DataFolder,
    store: Store,
    asked: u64,
    tuning: &Tuning,
) -> Result<Ground, OpenError> {
    let seed = store
        .fact(SEED)
        .await?
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(asked);
    if seed != asked {
        tracing::warn!(
            seed,
            asked,
            "the folder keeps the seed that it was made with; --fresh makes a new one"
        );
    }
    let mut writer = Writer::open(folder.path(), tuning.pages_max).await?;
    let folded = resume(&store, &mut writer)
        .await
        .map_err(|damage| damaged(folder.path(), damage))?;
    Ok(Ground {
        store,
        writer,
        folded,
        seed,
        epoch: EPOCH,
    })
}

async fn make(
    folder: &DataFolder,
    store: Store,
    seed: u64,
    tuning: &Tuning,
) -> Result<Ground, OpenError> {
    store.set_fact(MADE_FOR, UNFINISHED).await?;
    store.set_fact(SEED, &seed.to_string()).await?;
    store.put_people(&people()).await?;
    let mut writer = Writer::open(folder.path(), tuning.pages_max).await?;
    let (batches, mut made) = mpsc::channel(4);
    let (days, progress) = (tuning.history_days, tuning.progress.clone());
    // One thread makes history, one writes it.
    let maker = tokio::task::spawn_blocking(move || history(seed, days, batches, progress));
    while let Some(batch) = made.recv().await {
        writer.commit(&batch).await?;
    }
    let history = maker
        .await
        .map_err(|lost| OpenError::Store(Box::new(lost)))?;
    let folded = history.map_err(|refusal| OpenError::Store(Box::new(refusal)))?;
    writer
        .keep_snapshot(&snapshot_of(
            &folded.state,
            &folded.meter,
            &folded.recorder,
        )?)
        .await?;
    // Arrivals up to here were in the history.
    let end = EPOCH + Millis(Millis::DAY.0 * u64::from(days));
    store
        .set_fact(ARRIVALS, &end.0.saturating_sub(1).to_string())
        .await?;
    store.set_fact(MADE_FOR, DEMO).await?;
    Ok(Ground {
        store,
        writer,
        folded,
        seed,
        epoch: EPOCH,
    })
}

fn history(
    seed: u64,
    days: u32,
    batches: mpsc::Sender<Transaction>,
    progress: OnProgress,
) -> Result<Folded, Refusal> {
    let mut book = Book {
        recorder: Recorder::default(),
        live: BTreeMap::new(),
        write: Transaction::default(),
        batches,
        progress,
        days: (0, days),
    };
    let end = EPOCH + Millis(Millis::DAY.0 * u64::from(days));
    let engine = simulation::demo::history(seed, EPOCH, end, &mut book)?;
    book.send();
    book.tell(days);
    Ok(Folded {
        state: engine.state,
        meter: engine.meter,
        lines: Some(book.recorder.line),
        // Kept right after this.
        snapshot: book.recorder.seq,
        recorder: book.recorder,
    })
}

/// Writes history down as it is made.
struct Book {
    recorder: Recorder,
    /// Live jobs as they were at their last event.
    live: BTreeMap<JobId, Job>,
    write: Transaction,
    batches: mpsc::Sender<Transaction>,
    progress: OnProgress,
    /// Days told, of so many.
    days: (u32, u32),
}

impl Book {
    fn send(&mut self) {
        // The receiver is gone only when the start has failed already.
        drop(self.batches.blocking_send(std::mem::take(&mut self.write)));
    }

    fn tell(&mut self, day: u32) {
        if day > self.days.0 {
            self.days.0 = day;
            (self.progress)(Progress {
                day,
                days: self.days.1,
                events: self.recorder.seq,
            });
        }
    }
}

impl Sink for Book {
    fn wants_reasons(&self) -> bool {
        false
    }

    fn event(&mut self, state: &State, event: &Event, lines: &[UsageLine]) {
        let job = event.fact.job();
        let before = match (&event.fact, job) {
            (Fact::JobEnded { .. }, Some(job)) => self.live.remove(&job),
            _ => None,
        };
        self.recorder.note(
            state,
            event,
            lines.to_vec(),
            before.as_ref(),
            &mut self.write,
        );
        if let Some(job) = job.and_then(|job| state.jobs.get(&job)) {
            self.live.insert(job.id, job.clone());
        }
    }

    fn batch(&mut self, _state: &State, batch: &driver::Batch) {
        if self.write.entries.len() >= ENTRIES_MAX {
            self.send();
        }
        self.tell((batch.at.since(EPOCH).0 / Millis::DAY.0) as u32);
    }
}

/// People who go on asking for work, from the seed.
struct Asking {
    seed: u64,
    workload: Peekable<Workload>,
    /// When the last one asked.
    last: Millis,
}

impl Asking {
    /// All who ask after a time.
    fn after(seed: u64, last: Millis) -> Self {
        Self {
            seed,
            workload: Workload::new(seed, last + Millis(1)).peekable(),
            last,
        }
    }
}

impl Arrivals for Asking {
    fn due(&mut self) -> Option<Millis> {
        self.workload.peek().map(|arrival| arrival.at)
    }

    fn take(&mut self, now: Millis, state: &State) -> Option<Command> {
        while let Some(arrival) = self.workload.next_if(|arrival| arrival.at <= now) {
            self.last = arrival.at;
            if is_wanted(state, &arrival.spec) {
                return Some(Command::Submit {
                    owner: arrival.owner,
                    spec: arrival.spec,
                });
            }
        }
        None
    }

    fn progress(&self) -> String {
        self.last.0.to_string()
    }

    fn go_back(&mut self, progress: &str) {
        if let Ok(last) = progress.parse() {
            *self = Self::after(self.seed, Millis(last));
        }
    }
}

/// True for what a folder is made for while its history is not whole.
pub(crate) fn is_unfinished(made_for: &str) -> bool {
    made_for == UNFINISHED
}

/// The arrivals as they were after the last entry.
pub(crate) async fn arrivals(ground: &Ground) -> Result<Box<dyn Arrivals>, OpenError> {
    let kept = ground.store.fact(ARRIVALS).await?;
    let last = kept
        .and_then(|last| last.parse().ok())
        .map_or(ground.folded.state.at, Millis);
    Ok(Box::new(Asking::after(ground.seed, last)))
}

fn role(role: DemoRole) -> Role {
    match role {
        DemoRole::Member => Role::Member,
        DemoRole::Lead => Role::Lead,
        DemoRole::Manager => Role::Manager,
        DemoRole::Admin => Role::Admin,
    }
}

/// The demo's people as everything else knows people.
fn people() -> Vec<PersonView> {
    demo_people()
        .into_iter()
        .map(|person| {
            let in_teams = person.teams.iter().map(|(team, of)| Membership {
                team: Some(team.to_string()),
                role: role(*of),
            });
            let everywhere = person.everywhere.map(|of| Membership {
                team: None,
                role: role(of),
            });
            PersonView {
                id: person.id.to_string(),
                name: person.name,
                memberships: in_teams.chain(everywhere).collect(),
            }
        })
        .collect()
}
