-- The journal's format, as server/control/src/store/chain.rs has it: a checksum of the entry and of all before it. Entries
-- of version 1 have none.
ALTER TABLE journal ADD COLUMN sum BLOB;

-- From `first` on entries are of this version; `anchor` is the checksum of all before it.
CREATE TABLE journal_formats (
    version INTEGER PRIMARY KEY,
    first   INTEGER NOT NULL,
    anchor  BLOB    NOT NULL
) STRICT;
CREATE TRIGGER journal_formats_are_not_edited BEFORE UPDATE ON journal_formats
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER journal_formats_are_not_cut BEFORE DELETE ON journal_formats
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
