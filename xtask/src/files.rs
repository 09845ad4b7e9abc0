//! Folders and files, in an order that does not depend on the disk.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Every file below a folder, sorted by path. A folder that is not there has none.
pub fn below(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    collect(folder, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(Failure::disk("read", folder))? {
        let path = entry.map_err(Failure::disk("read", folder))?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

/// The folder is there and empty afterwards.
pub fn renew(folder: &Path) -> Result<(), Failure> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(Failure::disk("remove", folder))?;
    }
    fs::create_dir_all(folder).map_err(Failure::disk("create", folder))
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_with_both_digits() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_files() -> Result<(), Failure> {
        assert_eq!(below(Path::new("no/such/folder"))?, Vec::<PathBuf>::new());
        Ok(())
    }
}
