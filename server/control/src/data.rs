//! The data folder: what is in it, and that only one process runs it.

use crate::OpenError;
use crate::store::FILE;
use std::fs::{self, File, TryLockError};
use std::io;
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

impl DataFolder {
    /// Makes the folder if it is not there, and locks it against a second process.
    pub(crate) fn lock(path: &Path) -> Result<Self, OpenError> {
        fs::create_dir_all(path).map_err(|error| refused(path, in_words(&error)))?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK))
            .map_err(|error| refused(path, in_words(&error)))?;
        match file.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: file,
            }),
            Err(TryLockError::WouldBlock) => Err(refused(
                path,
                "another muster is running on it; stop that one first, if you want this folder",
            )),
            Err(TryLockError::Error(error)) => Err(refused(path, in_words(&error))),
        }
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
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
                Err(error) => return Err(refused(&self.path, in_words(&error))),
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
        Err(error) => Err(refused(path, in_words(&error))),
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

    #[test]
    fn a_file_is_no_data_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("data");
        fs::write(&file, "x").expect("a file");
        let error = DataFolder::lock(&file).expect_err("a file is no folder");
        assert!(error.to_string().contains("it is no folder"), "{error}");
    }
}
