//! The control plane itself: how it is opened and closed, and what its services stand on.

use crate::data::DataFolder;
use crate::engine::{
    Arrivals, Ask, Core, Damage, Done, Engine, Folded, Live, MAILBOX, Published, hash_of, resume,
};
use crate::executor::Simulated;
use crate::gauges::Gauges;
use crate::store::{MADE_FOR, Read, Store, StoreError, Writer, journal};
use crate::{Change, Clock, Demand, Mode, OpenError, Options, ServiceError, Tuning, demo};
use scheduler::{Command, Millis};
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
        Self::Store(Box::new(error))
    }
}
impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        Self::Internal(Box::new(error))
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
                let ground = prepare_serve(&folder).await?;
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
            core.state.clone(),
            core.meter.clone(),
            core.recorder.seq,
        ));
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

    /// True once the state is folded and the engine task takes commands.
    pub fn ready(&self) -> bool {
        self.inner.gauges.running() && !self.inner.mailbox.is_closed()
    }
    /// Returns once the engine takes nothing any more, whether it was told to stop or cannot write: nothing changes then.
    pub async fn stopped(&self) {
        self.inner.gauges.stopped().await;
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
        let done = answered
            .await
            .map_err(|lost| ServiceError::Internal(Box::new(lost)))?;
        Ok(done?)
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

async fn prepare_serve(folder: &DataFolder) -> Result<Ground, OpenError> {
    let store = Store::create(folder.path()).await?;
    let mut writer = Writer::open(folder.path()).await?;
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
