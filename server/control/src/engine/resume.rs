//! A start: the newest snapshot, then the tail of the journal.

use super::core::Folded;
use super::recorder::Recorder;
use crate::store::{Snapshot, Store, StoreError, Writer, journal};
use scheduler::{Meter, State};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;

/// What a snapshot holds.
#[derive(Debug, Serialize, Deserialize)]
struct SnapshotBody {
    state: State,
    meter: Meter,
}

#[derive(Serialize)]
struct SnapshotRef<'a> {
    state: &'a State,
    meter: &'a Meter,
}

struct Hashing(Sha256);

impl io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// SHA-256 over the state's JSON. Its maps are ordered by key, its structs by declaration, so one state has one text.
pub(crate) fn hash_of(state: &State) -> Result<String, StoreError> {
    let mut writer = io::BufWriter::with_capacity(1 << 16, Hashing(Sha256::new()));
    serde_json::to_writer(&mut writer, state).map_err(|source| StoreError::Parse {
        what: "state",
        source,
    })?;
    let hashing = writer.into_inner().map_err(|error| StoreError::Parse {
        what: "state",
        source: serde_json::Error::io(error.into_error()),
    })?;
    Ok(hex(&hashing.0.finalize()))
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// A snapshot of a state after an entry.
pub(crate) fn snapshot_of(state: &State, meter: &Meter, seq: u64) -> Result<Snapshot, StoreError> {
    let body =
        serde_json::to_vec(&SnapshotRef { state, meter }).map_err(|source| StoreError::Parse {
            what: "snapshot",
            source,
        })?;
    Ok(Snapshot {
        seq,
        hash: hash_of(state)?,
        body,
    })
}

/// Why a journal does not fold.
#[derive(Debug)]
pub(crate) enum Damage {
    /// The store refuses or does not parse.
    Store(StoreError),
    /// An entry is wrong.
    Entry {
        /// Which.
        seq: u64,
        /// What is wrong.
        problem: String,
    },
}

impl From<StoreError> for Damage {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Entry { seq, source } => Self::Entry {
                seq,
                problem: format!("it does not parse: {source}"),
            },
            other => Self::Store(other),
        }
    }
}

/// Entries read at a time.
const CHUNK: u32 = 5_000;

/// The state at the journal's end, from the newest snapshot on, and the numbers to go on from.
pub(crate) async fn resume(store: &Store, writer: &mut Writer) -> Result<Folded, Damage> {
    let mut folded = fold_from_snapshot(store).await?;
    let (end, line) = writer.ends().await?;
    if end != folded.recorder.seq {
        return Err(Damage::Entry {
            seq: folded.recorder.seq + 1,
            problem: format!("it is missing; the last one is {end}"),
        });
    }
    folded.recorder.line = line;
    Ok(folded)
}

/// The state at the journal's end, from the newest sound snapshot on. The ledger's end is not in it.
pub(crate) async fn fold_from_snapshot(store: &Store) -> Result<Folded, Damage> {
    let mut folded = sound_snapshot(store).await?;
    fold_tail(store, &mut folded).await?;
    Ok(folded)
}

/// What the newest snapshot holds that is as it was written. A snapshot only spares work: one that is not sound is passed
/// over, and without any the fold begins at the first entry.
async fn sound_snapshot(store: &Store) -> Result<Folded, Damage> {
    let mut before = u64::MAX;
    while let Some(snapshot) = store.snapshot_before(before).await? {
        before = snapshot.seq;
        match open_snapshot(&snapshot) {
            Ok(folded) => return Ok(folded),
            Err(problem) => tracing::warn!(
                entry = snapshot.seq,
                problem,
                "a snapshot is passed over: the start takes longer, and the journal is what counts"
            ),
        }
    }
    Ok(Folded::default())
}

/// What a snapshot holds, or what is wrong with it.
pub(crate) fn open_snapshot(snapshot: &Snapshot) -> Result<Folded, String> {
    let body: SnapshotBody = serde_json::from_slice(&snapshot.body)
        .map_err(|error| format!("it does not parse: {error}"))?;
    let hash = hash_of(&body.state).map_err(|error| error.to_string())?;
    if hash != snapshot.hash {
        return Err("it is not the one that was written".to_owned());
    }
    Ok(Folded {
        state: body.state,
        meter: body.meter,
        recorder: Recorder {
            seq: snapshot.seq,
            line: 0,
        },
        snapshot: snapshot.seq,
    })
}

/// Folds what the journal holds beyond `folded`.
async fn fold_tail(store: &Store, folded: &mut Folded) -> Result<(), Damage> {
    let mut read = store.read().await?;
    loop {
        let entries = journal::after(&mut read, folded.recorder.seq, CHUNK).await?;
        if entries.is_empty() {
            return Ok(());
        }
        for entry in entries {
            if entry.seq != folded.recorder.seq + 1 {
                let missing = folded.recorder.seq + 1;
                return Err(Damage::Entry {
                    seq: missing,
                    problem: format!("it is missing; {} follows", entry.seq),
                });
            }
            scheduler::apply(&mut folded.state, &entry.event);
            folded.meter.observe(&folded.state, &entry.event);
            folded.recorder.seq = entry.seq;
        }
    }
}
