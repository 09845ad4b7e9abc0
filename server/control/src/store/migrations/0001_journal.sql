-- The journal: everything that happened, in order. Never changed, never deleted.
CREATE TABLE journal (
    seq  INTEGER PRIMARY KEY,
    at   INTEGER NOT NULL,
    job  INTEGER,
    kind TEXT    NOT NULL,
    body TEXT    NOT NULL
) STRICT;
CREATE INDEX journal_by_job ON journal (job, seq) WHERE job IS NOT NULL;
-- A job's saves apart from the rest of its life: a long job has thousands of the one and a handful of the other.
CREATE INDEX journal_saves ON journal (job, kind, seq) WHERE kind IN ('checkpoint_started', 'checkpoint_saved');
CREATE INDEX journal_lives ON journal (job, seq)
    WHERE job IS NOT NULL AND kind NOT IN ('checkpoint_started', 'checkpoint_saved');
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
-- Each holds all that a filter may ask, so that counting and finding a page read no rows but those shown.
CREATE INDEX jobs_by_team  ON jobs (team, state, id, name);
CREATE INDEX jobs_by_state ON jobs (state, id, name);
CREATE INDEX jobs_by_owner ON jobs (owner, state, id, team, name);

-- How many there are, so that a list need not count 100,000 to say it.
CREATE TABLE job_counts (
    team  TEXT    NOT NULL,
    state TEXT    NOT NULL,
    jobs  INTEGER NOT NULL,
    PRIMARY KEY (team, state)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER jobs_begun AFTER INSERT ON jobs
BEGIN
    INSERT INTO job_counts (team, state, jobs) VALUES (new.team, new.state, 1) ON CONFLICT DO UPDATE SET jobs = jobs + 1;
END;
CREATE TRIGGER jobs_moved AFTER UPDATE OF state ON jobs WHEN old.state <> new.state
BEGIN
    UPDATE job_counts SET jobs = jobs - 1 WHERE team = old.team AND state = old.state;
    INSERT INTO job_counts (team, state, jobs) VALUES (new.team, new.state, 1) ON CONFLICT DO UPDATE SET jobs = jobs + 1;
END;

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
CREATE INDEX usage_lines_by_team ON usage_lines (team, from_ms, id);
CREATE TRIGGER usage_lines_are_not_edited BEFORE UPDATE ON usage_lines
BEGIN SELECT RAISE(ABORT, 'usage lines are append-only'); END;
CREATE TRIGGER usage_lines_are_not_cut BEFORE DELETE ON usage_lines
BEGIN SELECT RAISE(ABORT, 'usage lines are append-only'); END;

-- Sums of usage lines by day of the billing zone and rate card (its start; -1 = none in force), so that a team's month
-- reads its own thousands of rows instead of hundreds of thousands. `muster journal verify` compares them with the lines.
CREATE TABLE usage_days (
    day         INTEGER NOT NULL,
    team        TEXT    NOT NULL,
    job         INTEGER NOT NULL,
    flavour     TEXT    NOT NULL,
    entitlement TEXT    NOT NULL,
    phase       TEXT    NOT NULL,
    card        INTEGER NOT NULL,
    held        INTEGER NOT NULL,
    PRIMARY KEY (team, day, job, flavour, entitlement, phase, card)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_days_by_job ON usage_days (job, day);

-- The same without the job, so that all teams' month is a few thousand rows however many jobs there were.
CREATE TABLE usage_team_days (
    team        TEXT    NOT NULL,
    day         INTEGER NOT NULL,
    flavour     TEXT    NOT NULL,
    entitlement TEXT    NOT NULL,
    phase       TEXT    NOT NULL,
    card        INTEGER NOT NULL,
    held        INTEGER NOT NULL,
    PRIMARY KEY (team, day, flavour, entitlement, phase, card)
) STRICT, WITHOUT ROWID;

-- Which jobs have usage in which month (202611), and how many there are.
CREATE TABLE usage_months (
    team  TEXT    NOT NULL,
    month INTEGER NOT NULL,
    job   INTEGER NOT NULL,
    PRIMARY KEY (team, month, job)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_counts (
    month INTEGER NOT NULL,
    team  TEXT    NOT NULL,
    jobs  INTEGER NOT NULL,
    PRIMARY KEY (month, team)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER usage_days_begun AFTER INSERT ON usage_days
BEGIN
    INSERT INTO usage_team_days (team, day, flavour, entitlement, phase, card, held)
        VALUES (new.team, new.day, new.flavour, new.entitlement, new.phase, new.card, new.held)
        ON CONFLICT DO UPDATE SET held = held + excluded.held;
    INSERT INTO usage_months (team, month, job) VALUES (new.team, new.day / 100, new.job) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER usage_days_grown AFTER UPDATE OF held ON usage_days
BEGIN
    UPDATE usage_team_days SET held = held + new.held - old.held
        WHERE team = new.team AND day = new.day AND flavour = new.flavour AND entitlement = new.entitlement
            AND phase = new.phase AND card = new.card;
END;
CREATE TRIGGER usage_months_begun AFTER INSERT ON usage_months
BEGIN
    INSERT INTO usage_counts (month, team, jobs) VALUES (new.month, new.team, 1)
        ON CONFLICT DO UPDATE SET jobs = jobs + 1;
END;

-- Which request made which job.
CREATE TABLE submissions (
    person TEXT NOT NULL,
    key    TEXT NOT NULL,
    hash   TEXT NOT NULL,
    job    INTEGER NOT NULL,
    PRIMARY KEY (person, key)
) STRICT, WITHOUT ROWID;
