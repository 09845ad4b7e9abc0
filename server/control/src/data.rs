//! The data folder: what is in it, and that only one process runs it.

use crate::OpenError;
use crate::store::{FILE, Store};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The lock's name.
const LOCK: &str = "muster.lock";

/// Everything of ours that `fresh` removes; nothing else is touched.
fn files() -> [String; 3] {
    [
        FILE.to_owned(),
        format!("{FILE}-wal"),
        format!("{FILE}-shm"),
    ]
}

/// A data folder that this process runs; let go when dropped.
#[derive(Debug)]
pub(crate) struct DataFolder {
    path: PathBuf,
    _lock: File,
}

fn refused(path: &Path, problem: impl Into<String>) -> OpenError {
    OpenError::DataFolder {
        path: path.display().to_string(),
        problem: problem.into(),
    }
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "it may not be written".to_owned(),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => "it is no folder".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "its file system is read-only".to_owned(),
        _ => error.to_string(),
    }
}

/// [`refused`], in the system's words.
pub(crate) fn refused_by(path: &Path, error: &io::Error) -> OpenError {
    refused(path, in_words(error))
}

/// A file that its owner alone may read: made so, when it is not there yet.
fn private(path: &Path) -> io::Result<File> {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
}

/// What to say of a folder that others of the machine may look into: everybody's jobs and bills are in it.
fn open_to_others(path: &Path) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let path = path.display();
    (mode & 0o077 != 0).then(|| {
        format!(
            "the data folder {path} is open to others of this machine (mode {mode:o}): chmod 700 {path}"
        )
    })
}

impl DataFolder {
    /// Makes the folder if it is not there, and locks it against a second process.
    pub(crate) fn lock(path: &Path) -> Result<Self, OpenError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| refused_by(path, &error))?;
        if let Some(warning) = open_to_others(path) {
            tracing::warn!("{warning}");
        }
        let file = private(&path.join(LOCK)).map_err(|error| refused_by(path, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: file,
            }),
            Err(TryLockError::WouldBlock) => Err(refused(
                path,
                "another muster is running on it; stop that one first, if you want this folder",
            )),
            Err(TryLockError::Error(error)) => Err(refused_by(path, &error)),
        }
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the database if it is not there, brings its schema up to date, and opens it. The log that SQLite keeps beside
    /// a file has the file's own mode.
    pub(crate) async fn store(&self) -> Result<Store, OpenError> {
        private(&self.path.join(FILE)).map_err(|error| refused_by(&self.path, &error))?;
        Ok(Store::create(&self.path).await?)
    }

    /// True when a database is there, whosever it is.
    pub(crate) fn holds_a_database(&self) -> bool {
        self.path.join(FILE).exists()
    }

    /// Removes the database of an earlier demo. The caller has made sure that it is one.
    pub(crate) fn wipe(&self) -> Result<(), OpenError> {
        for name in files() {
            match fs::remove_file(self.path.join(name)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(refused_by(&self.path, &error)),
            }
        }
        Ok(())
    }
}

/// A folder that some process may be running, with a database in it.
pub(crate) fn existing(path: &Path) -> Result<&Path, OpenError> {
    match fs::metadata(path.join(FILE)) {
        Ok(_) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(refused(
            path,
            format!("there is no {FILE} in it; start `muster demo` or `muster serve` on it first"),
        )),
        Err(error) => Err(refused_by(path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_process_is_refused_with_the_way_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = DataFolder::lock(folder.path()).expect("the first one may");
        let second = DataFolder::lock(folder.path()).expect_err("the second one may not");
        assert!(
            second
                .to_string()
                .contains("another muster is running on it"),
            "{second}"
        );
        drop(first);
        DataFolder::lock(folder.path()).expect("when the first one is gone it may");
    }

    #[test]
    fn fresh_removes_what_is_ours_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in [FILE, "thesis.txt"] {
            fs::write(folder.path().join(name), "x").expect("a file");
        }
        DataFolder::lock(folder.path())
            .and_then(|data| data.wipe())
            .expect("it may be wiped");
        assert!(!folder.path().join(FILE).exists() && folder.path().join("thesis.txt").exists());
    }

    #[tokio::test]
    async fn what_is_made_is_its_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new").join("data");
        let data = DataFolder::lock(&path).expect("it is made");
        let store = data.store().await.expect("it opens");
        store.set_fact("some", "fact").await.expect("written");
        let mode = |path: &Path| {
            fs::metadata(path)
                .expect("it is there")
                .permissions()
                .mode()
        };
        assert_eq!(mode(&path) & 0o777, 0o700);
        let files: Vec<_> = fs::read_dir(&path).expect("a folder").collect();
        assert_eq!(
            files.len(),
            4,
            "the lock, the database, its log and index: {files:?}"
        );
        for file in files {
            let file = file.expect("an entry").path();
            assert_eq!(mode(&file) & 0o777, 0o600, "{}", file.display());
        }
        assert_eq!(open_to_others(&path), None);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let warning = open_to_others(&path).expect("others may look");
        assert!(
            warning.contains("mode 755") && warning.contains("chmod 700"),
            "{warning}"
        );
        store.close().await;
    }

    #[test]
    fn a_file_is_no_data_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("data");
        fs::write(&file, "x").expect("a file");
        let error = DataFolder::lock(&file).expect_err("a file is no folder");
        assert!(error.to_string().contains("it is no folder"), "{error}");
    }
}
