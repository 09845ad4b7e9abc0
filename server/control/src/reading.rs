//! A data folder that is only looked at: one that a server runs on, or a copy that may not be written.

use crate::OpenError;
use crate::data::{self, refused_by};
use crate::store::{FILE, Store, StoreError};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A store to read from. Dropped, it leaves nothing behind.
pub(crate) struct Reading {
    /// The store.
    pub(crate) store: Store,
    _copy: Option<Copy>,
}

/// A private folder for as long as it is read.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        // What cannot be removed lies in the system's folder for what may be removed.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Opens a folder's store, where it can be written as any other reader, since SQLite keeps its lock beside the file.
pub(crate) async fn open(data: &Path) -> Result<Reading, OpenError> {
    match Store::attach(data::existing(data)?).await {
        Ok(store) => Ok(Reading { store, _copy: None }),
        Err(error) if error.wants_to_write() => untouched(data).await,
        Err(error) => Err(error.into()),
    }
}

/// Opens a folder's store without writing to the folder. What a server that was killed has left in the log beside the file
/// is folded in a copy.
async fn untouched(data: &Path) -> Result<Reading, OpenError> {
    let log = data.join(format!("{FILE}-wal"));
    if fs::metadata(&log).map_or(0, |log| log.len()) == 0 {
        let store = Store::attach_still(data).await?;
        return Ok(Reading { store, _copy: None });
    }
    let name = format!("muster-reading-{:032x}", rand::random::<u128>());
    let path = std::env::temp_dir().join(name);
    let made = DirBuilder::new().mode(0o700).create(&path);
    made.map_err(|error| refused_by(&path, &error))?;
    // Only now: what somebody else has made is not ours to remove.
    let copy = Copy(path);
    let refused = |error| refused_by(&copy.0, &error);
    for from in [data.join(FILE), log] {
        let to = copy.0.join(from.file_name().unwrap_or_default());
        fs::copy(&from, &to).map_err(refused)?;
    }
    Ok(Reading {
        store: Store::attach(&copy.0).await?,
        _copy: Some(copy),
    })
}

impl StoreError {
    /// The file or what lies beside it would have to be written.
    fn wants_to_write(&self) -> bool {
        matches!(self.primary_code(), Some(8 | 14))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Control, Demand, Mode, Options, Tuning, offline};
    use scheduler::Millis;
    use std::collections::BTreeMap;
    use std::time::SystemTime;

    fn listing(folder: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
        let files = fs::read_dir(folder).expect("a folder");
        let file = |entry: fs::DirEntry| {
            let about = entry.metadata().expect("a file");
            (
                entry.path(),
                (about.len(), about.modified().expect("a time")),
            )
        };
        files.map(|entry| file(entry.expect("an entry"))).collect()
    }

    /// A copy of a demo's folder, as a kill leaves it or after a close.
    async fn copy(closed: bool) -> (tempfile::TempDir, (u64, String)) {
        let (folder, copy) = (tempfile::tempdir(), tempfile::tempdir());
        let (folder, copy) = (folder.expect("a folder"), copy.expect("a folder"));
        let options = Options {
            data: folder.path().to_owned(),
            mode: Mode::Demo {
                seed: 7,
                speed: 1,
                fresh: false,
            },
        };
        let tuning = Tuning {
            history_days: 0,
            demand: Demand::None,
            clock: Some(Clock::held(Millis(1_792_476_000_000))),
            ..Tuning::default()
        };
        let control = Control::open_with(options, tuning).await.expect("it opens");
        let told = control.state_hash().expect("a hash");
        for name in [FILE.to_owned(), format!("{FILE}-wal")] {
            if folder.path().join(&name).exists() {
                fs::copy(folder.path().join(&name), copy.path().join(&name)).expect("a copy");
            }
        }
        if closed {
            // The last one who closes folds the log into the file.
            let store = Store::attach(copy.path()).await.expect("it opens");
            store.close().await;
        }
        control.close().await;
        (copy, told)
    }

    #[tokio::test]
    async fn a_copy_that_may_not_be_written_is_verified_as_it_is() {
        for closed in [true, false] {
            let (copy, told) = copy(closed).await;
            let before = listing(copy.path());
            assert_eq!(before.len(), if closed { 1 } else { 2 }, "{before:?}");
            let reading = untouched(copy.path()).await.expect("it can be read");
            let verified = offline::verify_all(&reading, copy.path())
                .await
                .expect("whole");
            assert_eq!((verified.events, verified.hash), told, "closed: {closed}");
            reading.store.close().await;
            assert_eq!(listing(copy.path()), before, "closed: {closed}");
        }
    }
}
