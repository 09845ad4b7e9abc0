//! A start: the newest snapshot, then the tail of the journal.

use super::claims::OpenClaims;
use super::core::Folded;
use super::recorder::Recorder;
use crate::store::{
    Chain, Ends, Snapshot, Store, StoreError, Transaction, Writer, claims, journal,
};
use scheduler::{Meter, State};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;

/// What a snapshot holds.
#[derive(Debug, Serialize, Deserialize)]
struct SnapshotBody {
    state: State,
    meter: Meter,
    /// Usage lines closed so far; older snapshots do not say.
    #[serde(default)]
    lines: Option<u64>,
}

#[derive(Serialize)]
struct SnapshotRef<'a> {
    state: &'a State,
    meter: &'a Meter,
    lines: Option<u64>,
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
    hash(state)
}

/// The text that proves a snapshot: the state's hash, a dot, and the hash of what else is in it. Older ones have no dot,
/// and prove the state alone.
pub(crate) fn seal_of(
    state: &State,
    meter: &Meter,
    lines: Option<u64>,
) -> Result<String, StoreError> {
    Ok(format!("{}.{}", hash_of(state)?, hash(&(meter, lines))?))
}

/// Whether a snapshot's text is this seal, as far as it goes.
pub(crate) fn is_sealed(snapshot: &Snapshot, seal: &str) -> bool {
    let proved = match snapshot.hash.contains('.') {
        true => Some(seal),
        false => seal.split('.').next(),
    };
    proved == Some(snapshot.hash.as_str())
}

fn hash(value: &impl Serialize) -> Result<String, StoreError> {
    let mut writer = io::BufWriter::with_capacity(1 << 16, Hashing(Sha256::new()));
    serde_json::to_writer(&mut writer, value).map_err(|source| StoreError::Parse {
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
pub(crate) fn snapshot_of(
    state: &State,
    meter: &Meter,
    recorder: &Recorder,
) -> Result<Snapshot, StoreError> {
    let lines = Some(recorder.line);
    let body = SnapshotRef {
        state,
        meter,
        lines,
    };
    let body = serde_json::to_vec(&body).map_err(|source| StoreError::Parse {
        what: "snapshot",
        source,
    })?;
    Ok(Snapshot {
        seq: recorder.seq,
        hash: seal_of(state, meter, lines)?,
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
            StoreError::Flawed { seq, flaw } => Self::Entry {
                seq,
                problem: flaw.to_string(),
            },
            other => Self::Store(other),
        }
    }
}

/// Entries read at a time.
const CHUNK: u32 = 5_000;
/// Entries proved at a time, while others work.
const CHUNK_PROVED: u32 = 500;

/// The state at the journal's end, from the newest snapshot on, and the numbers to go on from.
///
/// # Errors
/// What is wrong first, of all that there is.
pub(crate) async fn resume(store: &Store, writer: &mut Writer) -> Result<Folded, Damage> {
    match resume_tail(store, writer).await {
        Err(found @ Damage::Entry { .. }) => Err(first_of(store, found).await),
        done => done,
    }
}

/// What was found, or what lies before it: in the words of `muster journal verify`, where that finds the same.
async fn first_of(store: &Store, found: Damage) -> Damage {
    let earlier = prove(store, u64::MAX).await.map_err(Damage::from);
    match (earlier, &found) {
        (Err(Damage::Entry { seq, problem }), Damage::Entry { seq: known, .. })
            if seq <= *known =>
        {
            Damage::Entry { seq, problem }
        }
        _ => found,
    }
}

/// Whether all entries up to `last` are as they were written. Each is read and not folded: some microseconds. Nobody is kept
/// waiting, since every chunk is a read of its own; what is written stays as it is.
pub(crate) async fn prove(store: &Store, last: u64) -> Result<(), StoreError> {
    let mut chain = Chain::after(&mut *store.read().await?, 0).await?;
    while chain
        .prove(&mut *store.read().await?, CHUNK_PROVED, last)
        .await?
    {}
    Ok(())
}

async fn resume_tail(store: &Store, writer: &mut Writer) -> Result<Folded, Damage> {
    let ends = writer.known_ends().await?;
    check_journal(&ends)?;
    let mut folded = fold_from_snapshot(store).await?;
    check_read_models(&ends, &folded)?;
    folded.recorder.line = ends.line;
    writer.begin_checksums().await?;
    folded.recorder.claims = open_claims(store, writer, folded.state.claims_ever).await?;
    Ok(folded)
}

/// The open claims as they are listed. A folder from before there was a list gets it now, from its journal.
async fn open_claims(
    store: &Store,
    writer: &mut Writer,
    claims_ever: u64,
) -> Result<OpenClaims, Damage> {
    let mut read = store.read().await?;
    let last = claims::last(&mut read).await?;
    if last == claims_ever {
        return Ok(OpenClaims::of(claims::open(&mut read).await?));
    }
    if last > claims_ever {
        return Err(Damage::Entry {
            seq: journal::seq_of(&mut read).await? + 1,
            problem: format!("it is missing; claim {last} comes from a later entry"),
        });
    }
    // One transaction: half a list would be taken for a whole one at the next start.
    let (mut open, mut seq, mut write) = (OpenClaims::default(), 0, Transaction::default());
    loop {
        let entries = claims::entries_after(&mut read, seq, CHUNK).await?;
        let Some(last) = entries.last() else {
            writer.commit(&write).await?;
            return Ok(open);
        };
        seq = last.seq;
        for entry in &entries {
            open.note(&entry.event, &mut write);
        }
    }
}

/// No entry is missing, in the middle or at the end, as far as anything that is kept knows of it.
fn check_journal(ends: &Ends) -> Result<(), Damage> {
    let missing = |seq: u64, problem: String| Err(Damage::Entry { seq, problem });
    if let Some(gap) = ends.gap {
        return missing(
            gap,
            format!("it is missing; the journal goes on to {}", ends.seq),
        );
    }
    let (next, last) = (ends.seq + 1, ends.seq);
    if ends.written > last {
        let problem = format!(
            "it is missing; the journal ends at {last}, and was written up to {}",
            ends.written
        );
        return missing(next, problem);
    }
    if ends.snapshot > last {
        let problem = format!(
            "it is missing; the journal ends at {last}, and there is a snapshot of {}",
            ends.snapshot
        );
        return missing(next, problem);
    }
    Ok(())
}

/// Lists and usage end where the fold says. One that is ahead comes from entries that are gone.
fn check_read_models(ends: &Ends, folded: &Folded) -> Result<(), Damage> {
    let kept = [
        ("usage line", folded.lines, ends.line),
        ("job", Some(folded.state.counts.submitted), ends.job),
    ];
    for (what, made, kept) in kept {
        let Some(made) = made.filter(|made| *made != kept) else {
            continue;
        };
        let (seq, problem) = match kept > made {
            true => (
                ends.seq + 1,
                format!(
                    "it is missing; the journal ends at {}, and {what} {kept} comes from a later entry",
                    ends.seq
                ),
            ),
            false => (
                ends.seq,
                format!(
                    "{what} {made}, which is in the journal, is not in its list; that ends at {kept}"
                ),
            ),
        };
        return Err(Damage::Entry { seq, problem });
    }
    Ok(())
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
    Ok(Folded {
        lines: Some(0),
        ..Folded::default()
    })
}

/// What a snapshot holds, or what is wrong with it.
pub(crate) fn open_snapshot(snapshot: &Snapshot) -> Result<Folded, String> {
    let body: SnapshotBody = serde_json::from_slice(&snapshot.body)
        .map_err(|error| format!("it does not parse: {error}"))?;
    let seal = seal_of(&body.state, &body.meter, body.lines).map_err(|error| error.to_string())?;
    if !is_sealed(snapshot, &seal) {
        return Err("it is not the one that was written".to_owned());
    }
    Ok(Folded {
        state: body.state,
        meter: body.meter,
        recorder: Recorder {
            seq: snapshot.seq,
            line: 0,
            claims: OpenClaims::default(),
        },
        lines: body.lines,
        snapshot: snapshot.seq,
    })
}

/// Folds what the journal holds beyond `folded`.
async fn fold_tail(store: &Store, folded: &mut Folded) -> Result<(), Damage> {
    let mut read = store.read().await?;
    let mut chain = Chain::after(&mut read, folded.recorder.seq).await?;
    loop {
        let entries = chain.next(&mut read, CHUNK).await?;
        if entries.is_empty() {
            return Ok(chain.check_end(&mut read).await?);
        }
        for entry in entries {
            scheduler::apply(&mut folded.state, &entry.event);
            let lines = folded.meter.observe(&folded.state, &entry.event).len() as u64;
            folded.lines = folded.lines.map(|before| before + lines);
            folded.recorder.seq = entry.seq;
        }
    }
}
