-- Claims as lists show them, the open and the past ones: the state forgets those that are over. `body` is the record as JSON.
CREATE TABLE claims (
    id    INTEGER PRIMARY KEY,
    stage TEXT NOT NULL,
    body  TEXT NOT NULL
) STRICT;
CREATE INDEX claims_by_stage ON claims (stage, id);

-- Whose affair a claim is or was: the claimant's team, and every team that it ever named a victim of.
CREATE TABLE claim_teams (
    team  TEXT    NOT NULL,
    claim INTEGER NOT NULL,
    PRIMARY KEY (team, claim)
) STRICT, WITHOUT ROWID;
