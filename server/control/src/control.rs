//! The control plane itself: how it is opened and closed, and what its services stand on.

use crate::data::DataFolder;
use crate::engine::{
    Arrivals, Ask, Core, Damage, Done, Engine, EngineError, Folded, Live, MAILBOX, Published,
    Replies, hash_of, prove, resume,
};
use crate::executor::Simulated;
use crate::gauges::Gauges;
use crate::store::{MADE_FOR, Read, Store, StoreError, Writer, journal};
use crate::{Change, Clock, Demand, Mode, OpenError, Options, ServiceError, Tuning, demo};
use scheduler::{Command, JobId, Millis, Phase, State};
use sqlx::SqlitePool;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// Changes that a slow reader may fall behind before it is told to look again.
const CHANGES: usize = 64;
/// How often a read waits for the published state to catch up with the store, or the other way round.
const MATCH_TRIES: u32 = 100;
/// The longest of these waits: a batch is published right after it is written.
const PUBLISH_WAIT: Duration = Duration::from_millis(100);

/// How long whoever shows a new job waits for its reason: some cycles of a large fleet.
const LOOK_WAIT: Duration = Duration::from_secs(1);

/// The control plane. Cheap to clone.
#[derive(Clone)]
pub struct Control {
    pub(crate) inner: Arc<Inner>,
}

/// What the clones share.
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) published: Published,
    pub(crate) clock: Clock,
    pub(crate) gauges: Arc<Gauges>,
    pub(crate) mailbox: mpsc::Sender<Ask>,
    changes: broadcast::Sender<Change>,
    closing: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
    kind: Kind,
    /// The last entry and the state's hash that it began with.
    resumed: (u64, String),
    /// Let go when it is closed.
    folder: Mutex<Option<DataFolder>>,
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        match error.obstacle() {
            Some(obstacle) => Self::Blocked {
                obstacle,
                source: Box::new(error),
            },
            None => Self::Store(Box::new(error)),
        }
    }
}
impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        match error.obstacle() {
            Some(obstacle) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the store is in use"
                );
                Self::Standing(obstacle.to_owned())
            }
            None => Self::Internal(Box::new(error)),
        }
    }
}

/// A damage with its folder.
pub(crate) fn damaged(path: &Path, damage: Damage) -> OpenError {
    match damage {
        Damage::Store(error) => error.into(),
        Damage::Entry { seq, problem } => OpenError::Journal {
            path: path.display().to_string(),
            seq,
            problem,
        },
    }
}

/// Proves what the start has not read, the journal up to its snapshot, while the engine works already: a million entries
/// take seconds, and a start should not. Says what is wrong, if anything is.
fn prove_behind(
    store: &Store,
    snapshot: u64,
    mut closing: watch::Receiver<bool>,
) -> oneshot::Receiver<StoreError> {
    let (found, damage) = oneshot::channel();
    let store = store.clone();
    tokio::spawn(async move {
        let proved = tokio::select! {
            _ = closing.wait_for(|closing| *closing) => return,
            proved = prove(&store, snapshot) => proved,
        };
        match proved {
            // An engine that has ended meanwhile needs no word.
            Err(error @ StoreError::Flawed { .. }) => drop(found.send(error)),
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the journal before the snapshot could not be read to prove it; `muster journal verify` does"
            ),
            Ok(()) => {}
        }
    });
    damage
}

impl Control {
    /// Opens the data folder, folds its journal (from the last snapshot), starts the engine task and the executor. A fresh
    /// demo first makes its history.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        Self::open_with(options, Tuning::default()).await
    }

    /// [`Self::open`], with what tests and measurements change.
    pub async fn open_with(options: Options, tuning: Tuning) -> Result<Self, OpenError> {
        let folder = DataFolder::lock(&options.data)?;
        match options.mode {
            Mode::Demo { seed, speed, fresh } => {
                let ground = demo::prepare(&folder, seed, fresh, &tuning).await?;
                let arrivals = match tuning.demand {
                    Demand::Seeded => Some(demo::arrivals(&ground).await?),
                    Demand::None => None,
                };
                let base = ground.folded.state.at;
                let clock = tuning
                    .clock
                    .unwrap_or_else(|| Clock::virtual_from(base, speed));
                Self::start(folder, ground, arrivals, clock, Kind::Demo)
            }
            Mode::Serve => {
                let ground = prepare_serve(&folder, tuning.pages_max).await?;
                let base = ground.folded.state.at;
                let clock = tuning.clock.unwrap_or_else(|| Clock::wall(base));
                Self::start(folder, ground, None, clock, Kind::Serve)
            }
        }
    }

    fn start(
        folder: DataFolder,
        ground: Ground,
        arrivals: Option<Box<dyn Arrivals>>,
        clock: Clock,
        kind: Kind,
    ) -> Result<Self, OpenError> {
        let Ground {
            store,
            writer,
            folded,
            seed,
            epoch,
        } = ground;
        let snapshot = folded.snapshot;
        let resumed = (folded.recorder.seq, hash_of(&folded.state)?);
        let executor = Box::new(Simulated::resume(seed, epoch, &folded.state));
        let core = Core::new(folded, executor, arrivals);
        let published = Published::new(Live::of(
            State::clone(&core.state),
            core.meter.clone(),
            core.recorder.seq,
        ));
        let durable = core.recorder.clone();
        let (mailbox, asks) = mpsc::channel(MAILBOX);
        let (changes, _) = broadcast::channel(CHANGES);
        let (closing, closed) = watch::channel(false);
        let gauges = Arc::new(Gauges::default());
        let engine = Engine {
            core,
            writer,
            published: published.clone(),
            clock: clock.clone(),
            gauges: gauges.clone(),
            changes: changes.clone(),
            snapshot,
            durable,
            replies: Replies::default(),
            damage: Some(prove_behind(&store, snapshot, closed.clone())),
        };
        let task = Mutex::new(Some(tokio::spawn(engine.run(asks, closed))));
        let inner = Inner {
            store,
            published,
            clock,
            gauges,
            mailbox,
            changes,
            closing,
            task,
            kind,
            resumed,
            folder: Mutex::new(Some(folder)),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Stops taking commands, commits what was taken, writes a snapshot.
    pub async fn close(&self) {
        self.inner.closing.send_replace(true);
        let task = self
            .inner
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the engine task did not end well");
        }
        self.inner.store.close().await;
        drop(
            self.inner
                .folder
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }

    /// True once the state is folded, while the engine task takes commands.
    pub fn ready(&self) -> bool {
        self.running() && self.standing().is_none()
    }
    /// True while the engine task runs, also while it waits for the store to take something again.
    pub fn running(&self) -> bool {
        self.inner.gauges.running() && !self.inner.mailbox.is_closed()
    }
    /// What stands in the way of the store, while nothing can be stored.
    pub fn standing(&self) -> Option<&'static str> {
        self.inner.gauges.standing()
    }
    /// Why the engine has ended by itself, in one line with the way out.
    pub fn fault(&self) -> Option<&str> {
        self.inner.gauges.fault()
    }
    /// Returns once the engine takes nothing any more, whether it was told to stop or cannot write: nothing changes then.
    pub async fn stopped(&self) {
        self.inner.gauges.stopped().await;
    }
    /// Returns once a cycle has answered all that is on record by now, so that whoever looks sees what came of it; or the
    /// engine stands or has ended.
    pub async fn settled(&self) {
        self.inner.gauges.settled(self.seq()).await;
    }
    /// True in the demo: the choose-a-person page exists only then.
    pub fn is_demo(&self) -> bool {
        self.inner.kind == Kind::Demo
    }
    /// Changes, for the event stream; lagging receivers simply look again.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.inner.changes.subscribe()
    }
    /// The last committed journal sequence.
    pub fn seq(&self) -> u64 {
        self.inner.published.read().seq
    }
    /// The published state's last entry and its hash, as `muster journal verify` prints it.
    pub fn state_hash(&self) -> Result<(u64, String), ServiceError> {
        let live = self.inner.published.read();
        Ok((live.seq, hash_of(&live.state)?))
    }
    /// The last entry and the state's hash that this process began with: what `muster journal verify` prints of the same
    /// folder before the start.
    pub fn resumed(&self) -> (u64, &str) {
        (self.inner.resumed.0, &self.inner.resumed.1)
    }
    /// The pool for web sessions, which are in the same file.
    pub fn session_pool(&self) -> SqlitePool {
        self.inner.store.rest().clone()
    }
    /// The fleet's clock.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Asks the engine, and waits until what it did is durable.
    pub(crate) async fn ask(
        &self,
        command: Command,
        key: Option<(String, String)>,
    ) -> Result<Done, ServiceError> {
        Ok(self.try_ask(command, key).await??)
    }

    /// [`Self::ask`], for whoever has a word of their own for a refusal.
    pub(crate) async fn try_ask(
        &self,
        command: Command,
        key: Option<(String, String)>,
    ) -> Result<Result<Done, EngineError>, ServiceError> {
        if let Some(obstacle) = self.standing() {
            return Err(ServiceError::Standing(obstacle.to_owned()));
        }
        let (answer, answered) = oneshot::channel();
        self.inner
            .mailbox
            .try_send(Ask {
                command,
                key,
                answer,
            })
            .map_err(|refused| match refused {
                mpsc::error::TrySendError::Full(_) => ServiceError::Busy,
                mpsc::error::TrySendError::Closed(_) => {
                    ServiceError::Internal("the engine task has stopped".into())
                }
            })?;
        answered
            .await
            .map_err(|lost| ServiceError::Internal(Box::new(lost)))
    }

    /// Returns once a cycle has looked at a job that waits, so that whoever has just submitted it is told why; or after
    /// [`LOOK_WAIT`].
    pub(crate) async fn looked_at(&self, job: JobId) {
        let mut changes = self.changes();
        let not_yet = || {
            let live = self.inner.published.read();
            let of_job = live.state.jobs.get(&job);
            of_job.is_some_and(|job| job.phase == Phase::Queued) && !live.waiting.contains_key(&job)
        };
        let wait = async {
            while self.ready() && not_yet() {
                // Missed words are no matter: it looks again.
                if let Err(broadcast::error::RecvError::Closed) = changes.recv().await {
                    return;
                }
            }
        };
        drop(tokio::time::timeout(LOOK_WAIT, wait).await);
    }

    /// A moment of the store, and what `look` makes of the published state of the very same moment: figures of both
    /// agree.
    pub(crate) async fn moment<T>(
        &self,
        look: impl Fn(&Live, Millis) -> T,
    ) -> Result<(Read, T), ServiceError> {
        let mut tries = 0;
        let mut changes = self.changes();
        loop {
            let mut read = self.inner.store.read().await?;
            let seq = journal::seq_of(&mut read).await?;
            loop {
                let now = self.inner.clock.now();
                let ahead = {
                    let live = self.inner.published.read();
                    if live.seq == seq || tries >= MATCH_TRIES {
                        let found = look(&live, now.max(live.state.at));
                        drop(live);
                        return Ok((read, found));
                    }
                    live.seq > seq
                };
                tries += 1;
                if ahead {
                    break;
                }
                // Written, and published in a moment: told then. A word missed in between is bounded by the time-out.
                drop(tokio::time::timeout(PUBLISH_WAIT, changes.recv()).await);
            }
        }
    }
}

/// What a control plane starts on.
pub(crate) struct Ground {
    pub(crate) store: Store,
    pub(crate) writer: Writer,
    pub(crate) folded: Folded,
    pub(crate) seed: u64,
    /// When the fleet was put in service.
    pub(crate) epoch: Millis,
}

/// What a folder is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The demo.
    Demo,
    /// Service.
    Serve,
}

async fn prepare_serve(folder: &DataFolder, pages_max: Option<u32>) -> Result<Ground, OpenError> {
    let store = folder.store().await?;
    let mut writer = Writer::open(folder.path(), pages_max).await?;
    match store.fact(MADE_FOR).await?.as_deref() {
        None => {
            store.put_people(&[first_admin()]).await?;
            store.set_fact(MADE_FOR, "serve").await?;
        }
        Some("serve") => {}
        Some(_) => {
            return Err(OpenError::DataFolder {
                path: folder.path().display().to_string(),
                problem: "it holds a demo; `muster demo` goes on with it".to_owned(),
            });
        }
    }
    let folded = resume(&store, &mut writer)
        .await
        .map_err(|damage| damaged(folder.path(), damage))?;
    Ok(Ground {
        store,
        writer,
        folded,
        seed: 0,
        epoch: Millis(0),
    })
}

/// Whom a new folder knows, so that a token can be made on the box.
fn first_admin() -> contract::PersonView {
    contract::PersonView {
        id: "admin".to_owned(),
        name: "admin".to_owned(),
        memberships: vec![contract::Membership {
            team: None,
            role: contract::Role::Admin,
        }],
    }
}
