//! What can go wrong with the file, in words: what one may wait for, and what ends the process.

use super::StoreError;

/// What stands in the way of the store, as far as it can pass by itself or by somebody's hand.
pub(crate) type Obstacle = &'static str;

// SQLite's primary result codes (https://www.sqlite.org/rescode.html) that are told apart.
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const NOMEM: i32 = 7;
const READONLY: i32 = 8;
const IOERR: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANTOPEN: i32 = 14;
const NOTADB: i32 = 26;
/// Of `IOERR`: the file system itself is damaged.
const IOERR_CORRUPTFS: i32 = IOERR | (33 << 8);

impl StoreError {
    /// SQLite's extended result code.
    fn code(&self) -> Option<i32> {
        match self {
            Self::Sql {
                source: sqlx::Error::Database(error),
                ..
            } => error.code()?.parse().ok(),
            _ => None,
        }
    }

    /// SQLite's primary result code.
    pub(crate) fn primary_code(&self) -> Option<i32> {
        Some(self.code()? & 0xff)
    }

    /// What one waits for, when waiting can help; `None` for a fault that stays.
    pub(crate) fn obstacle(&self) -> Option<Obstacle> {
        if let Self::Sql {
            source: sqlx::Error::PoolTimedOut,
            ..
        } = self
        {
            return Some("every connection to the database is in use");
        }
        let code = self.code()?;
        if code == IOERR_CORRUPTFS {
            return None;
        }
        match code & 0xff {
            BUSY | LOCKED => Some("another program holds the database's write lock; end it"),
            FULL => Some("the disk is full; make room on it"),
            IOERR => Some("the disk does not take what is written; the system's log says why"),
            CANTOPEN => Some(
                "the database file cannot be opened; may its folder be written, and is its disk mounted?",
            ),
            NOMEM => Some("the machine is out of memory"),
            _ => None,
        }
    }

    /// The way out of a fault that stays.
    pub(crate) fn way_out(&self) -> &'static str {
        if let Self::Flawed { .. } = self {
            return "keep a copy of the data folder, restore it from a backup, then start again";
        }
        match self.primary_code() {
            Some(READONLY) => {
                "the database may not be written: give the data folder and its files back to this user, then start again"
            }
            Some(CORRUPT | NOTADB | IOERR) => {
                "the database is damaged: keep a copy of the data folder, restore it from a backup, then start again"
            }
            _ => {
                "nothing that was answered is lost: `muster journal verify --data DIR` says what is wrong with the data folder"
            }
        }
    }
}

#[cfg(test)]
mod tests;
