-- What models were asked and what they answered; rows are only ever added. A resumed run finds its
-- answers here by role and ordinal.
CREATE TABLE call (
    sequence    INTEGER PRIMARY KEY, -- of answers
    role        TEXT NOT NULL,
    ordinal     INTEGER NOT NULL,    -- of the role's requests
    candidates  INTEGER NOT NULL,    -- outcomes that were recorded before it
    model       TEXT NOT NULL,
    prompt_hash TEXT NOT NULL,       -- SHA-256 of system and user, hexadecimal
    system      TEXT NOT NULL,
    user        TEXT NOT NULL,
    reply       TEXT NOT NULL,
    tokens_in   INTEGER NOT NULL,
    tokens_out  INTEGER NOT NULL,
    cost        REAL,                -- dollars; NULL: not known
    seconds     REAL NOT NULL,
    cut         INTEGER NOT NULL,    -- 1: ended by its token limit
    UNIQUE (role, ordinal)
);
