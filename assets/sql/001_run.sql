-- The tables of a run. Rows of candidate and outcome are only ever added; meta holds the run's
-- fingerprint and what it noted about itself.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE candidate (
    ordinal     INTEGER PRIMARY KEY, -- of submission, from 0
    generation  INTEGER NOT NULL,
    slot        INTEGER NOT NULL,    -- in its generation
    strategy    TEXT NOT NULL,       -- canonical text
    reason      TEXT NOT NULL,       -- why it was tried
    source      TEXT NOT NULL,
    source_hash TEXT NOT NULL        -- SHA-256 of the source, hexadecimal
);

CREATE TABLE outcome (
    ordinal INTEGER PRIMARY KEY REFERENCES candidate (ordinal),
    record  TEXT NOT NULL            -- JSON, as the evaluator made it
);
