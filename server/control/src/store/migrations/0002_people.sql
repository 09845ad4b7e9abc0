CREATE TABLE people (
    id   TEXT PRIMARY KEY,
    name TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- `team` is empty for a role over everything.
CREATE TABLE memberships (
    person TEXT NOT NULL REFERENCES people (id),
    team   TEXT NOT NULL,
    role   TEXT NOT NULL,
    PRIMARY KEY (person, team)
) STRICT, WITHOUT ROWID;
CREATE INDEX memberships_by_team ON memberships (team);

-- API tokens: only a hash of the secret is kept. Times are the wall's, also in the demo.
CREATE TABLE tokens (
    id        TEXT PRIMARY KEY,
    person    TEXT    NOT NULL REFERENCES people (id),
    name      TEXT    NOT NULL,
    prefix    TEXT    NOT NULL,
    hash      TEXT    NOT NULL UNIQUE,
    created   INTEGER NOT NULL,
    expires   INTEGER NOT NULL,
    last_used INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_by_person ON tokens (person);
