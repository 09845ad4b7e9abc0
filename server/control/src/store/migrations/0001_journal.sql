-- The journal: everything that happened, in order. Never changed, never deleted.
CREATE TABLE journal (
    seq  INTEGER PRIMARY KEY,
    at   INTEGER NOT NULL,
    job  INTEGER,
    kind TEXT    NOT NULL,
    body TEXT    NOT NULL
) STRICT;
CREATE INDEX journal_by_job ON journal (job, seq) WHERE job IS NOT NULL;
CREATE TRIGGER journal_is_not_edited BEFORE UPDATE ON journal
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER journal_is_not_cut BEFORE DELETE ON journal
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;

-- A fold up to `seq`, so that a start need not begin at the first entry. `hash` is the state's.
CREATE TABLE snapshots (
    seq  INTEGER PRIMARY KEY,
    hash TEXT    NOT NULL,
    body BLOB    NOT NULL
) STRICT;

-- Single facts about the folder: its mode and seed, how far its sources have come.
CREATE TABLE facts (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Jobs as lists show them. Narrow, so that a scan of 100,000 is quick; what only one job's page needs is in job_details.
CREATE TABLE jobs (
    id         INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    team       TEXT    NOT NULL,
    project    TEXT    NOT NULL,
    owner      TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    stopping   INTEGER NOT NULL,
    priority   TEXT    NOT NULL,
    flavours   TEXT    NOT NULL,
    gpus_milli INTEGER NOT NULL,
    pods       INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    ran_ms     INTEGER NOT NULL,
    submitted  INTEGER NOT NULL,
    started    INTEGER,
    ended      INTEGER,
    ends_by    INTEGER,
    own_milli      INTEGER,
    borrowed_milli INTEGER,
    place      TEXT,
    end_cause  TEXT
) STRICT;
CREATE INDEX jobs_by_team  ON jobs (team, state, id);
CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE INDEX jobs_by_owner ON jobs (owner, state, id);

CREATE TABLE job_details (
    id        INTEGER PRIMARY KEY,
    spec      TEXT NOT NULL,
    placement TEXT
) STRICT;

-- Usage lines, in the order in which they were closed. Never changed, never deleted.
CREATE TABLE usage_lines (
    id          INTEGER PRIMARY KEY,
    job         INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    team        TEXT    NOT NULL,
    project     TEXT    NOT NULL,
    owner       TEXT    NOT NULL,
    flavour     TEXT    NOT NULL,
    entitlement TEXT    NOT NULL,
    unit        TEXT    NOT NULL,
    phase       TEXT    NOT NULL,
    from_ms     INTEGER NOT NULL,
    to_ms       INTEGER NOT NULL,
    gpus_milli  INTEGER NOT NULL,
    cpu_milli   INTEGER NOT NULL,
    nodes       INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_lines_by_job  ON usage_lines (job, id);
CREATE INDEX usage_lines_by_team ON usage_lines (team, id);
CREATE TRIGGER usage_lines_are_not_edited BEFORE UPDATE ON usage_lines
BEGIN SELECT RAISE(ABORT, 'usage lines are append-only'); END;
CREATE TRIGGER usage_lines_are_not_cut BEFORE DELETE ON usage_lines
BEGIN SELECT RAISE(ABORT, 'usage lines are append-only'); END;

-- Sums of usage lines by day of the billing zone and rate card (its start; -1 = none in force), so that a month's bill
-- reads thousands of rows instead of hundreds of thousands. `muster journal verify` compares them with the lines.
CREATE TABLE usage_days (
    day         INTEGER NOT NULL,
    team        TEXT    NOT NULL,
    job         INTEGER NOT NULL,
    flavour     TEXT    NOT NULL,
    entitlement TEXT    NOT NULL,
    phase       TEXT    NOT NULL,
    card        INTEGER NOT NULL,
    held        INTEGER NOT NULL,
    PRIMARY KEY (day, team, job, flavour, entitlement, phase, card)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_days_by_job ON usage_days (job);

-- Which request made which job.
CREATE TABLE submissions (
    person TEXT NOT NULL,
    key    TEXT NOT NULL,
    hash   TEXT NOT NULL,
    job    INTEGER NOT NULL,
    PRIMARY KEY (person, key)
) STRICT, WITHOUT ROWID;
