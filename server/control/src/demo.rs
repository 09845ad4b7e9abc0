//! The demo: a fleet, its people and a month of history, made once from a seed; then life goes on from there.
//!
//! The history is made by the same core that runs afterwards, with the clock out of the way. Its times are fixed, so that
//! two demos of one seed are equal to the byte whenever they are made.

use crate::control::{Ground, MADE_FOR, damaged};
use crate::data::DataFolder;
use crate::engine::{ARRIVALS, Arrivals, Batch, Core, Folded, resume, snapshot_of};
use crate::executor::Simulated;
use crate::store::{Store, Writer};
use crate::{OpenError, Progress, Tuning};
use contract::{Membership, PersonView, Role};
use scheduler::{Command, Millis};
use simulation::demo::{DemoRole, demo_configuration, demo_people, rate_card};
use tokio::sync::mpsc;

/// When the demo's history begins: 2026-10-20T06:00:00Z. Thirty days later it is half past the month after.
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
    if fresh {
        folder.wipe()?;
    }
    let mut store = Store::create(folder.path()).await?;
    match store.fact(MADE_FOR).await?.as_deref() {
        Some(DEMO) => return go_on(folder, store, seed).await,
        Some(UNFINISHED) => {
            store.close().await;
            folder.wipe()?;
            store = Store::create(folder.path()).await?;
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

async fn go_on(folder: &DataFolder, store: Store, asked: u64) -> Result<Ground, OpenError> {
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
    let mut writer = Writer::open(folder.path()).await?;
    let folded = resume(&store, &mut writer)
        .await
        .map_err(|damage| damaged(folder.path(), damage))?;
    Ok(Ground {
        store,
        writer,
        folded,
        seed,
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
    let mut writer = Writer::open(folder.path()).await?;
    let (batches, mut made) = mpsc::channel(4);
    let (days, progress) = (tuning.history_days, tuning.progress.clone());
    // One thread makes history, one writes it.
    let maker = tokio::task::spawn_blocking(move || {
        let arrivals = first_arrivals(seed);
        let mut core = Core::new(Folded::default(), Box::new(Simulated::new(seed)), arrivals);
        history(&mut core, days, &batches, &*progress);
        core
    });
    while let Some(batch) = made.recv().await {
        let batch: Batch = batch;
        writer.commit(&batch.write).await?;
    }
    let core = maker
        .await
        .map_err(|lost| OpenError::Store(Box::new(lost)))?;
    writer
        .keep_snapshot(&snapshot_of(&core.state, &core.meter, core.seq)?)
        .await?;
    store.set_fact(MADE_FOR, DEMO).await?;
    let folded = Folded {
        seq: core.seq,
        line: core.line,
        meter: core.meter,
        state: core.state,
    };
    Ok(Ground {
        store,
        writer,
        folded,
        seed,
    })
}

/// Sets the fleet up and lets `days` go by. Ends early when nobody takes the batches any more.
fn history(
    core: &mut Core,
    days: u32,
    batches: &mpsc::Sender<Batch>,
    progress: &(dyn Fn(Progress) + Send + Sync),
) {
    let mut batch = Batch::default();
    let prices = scheduler::Configure::RateCard(rate_card(EPOCH));
    for change in demo_configuration().into_iter().chain([prices]) {
        if let Err(refusal) = core.take(&Command::Configure(change), EPOCH, &mut batch) {
            tracing::error!(%refusal, "the engine refuses the demo's own fleet");
        }
    }
    core.settle(EPOCH, &mut batch);
    for day in 1..=days {
        let end = EPOCH + Millis(Millis::DAY.0 * u64::from(day));
        loop {
            let reached = core.advance(Millis(end.0 - 1), ENTRIES_MAX, &mut batch);
            if reached && day < days && batch.write.entries.len() < ENTRIES_MAX / 2 {
                break;
            }
            core.note_progress(&mut batch);
            if batches.blocking_send(std::mem::take(&mut batch)).is_err() {
                return;
            }
            if reached {
                break;
            }
        }
        progress(Progress {
            day,
            days,
            events: core.seq,
        });
    }
    if !batch.is_empty() {
        core.note_progress(&mut batch);
        // The receiver is gone only when the start has failed already.
        drop(batches.blocking_send(batch));
    }
}

/// The arrivals as they were after the last entry.
pub(crate) async fn arrivals(
    store: &Store,
    seed: u64,
    folded: &Folded,
) -> Result<Option<Box<dyn Arrivals>>, OpenError> {
    let progress = store.fact(ARRIVALS).await?;
    Ok(later_arrivals(seed, folded, progress.as_deref()))
}

fn first_arrivals(_seed: u64) -> Option<Box<dyn Arrivals>> {
    None
}

fn later_arrivals(
    _seed: u64,
    _folded: &Folded,
    _progress: Option<&str>,
) -> Option<Box<dyn Arrivals>> {
    None
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
