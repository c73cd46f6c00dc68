-- Members who are not to be quoted, members who left, and what was done for each of them.

-- Told by the account's id where it is known, and by the name: his posts may have come without the one or the other.
CREATE TABLE opt_outs (
    opt_out_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id    bigint UNIQUE,
    username   text UNIQUE,
    by         text NOT NULL,
    reason     text NOT NULL,
    since      timestamptz NOT NULL,
    CONSTRAINT an_opt_out_is_somebodys CHECK (num_nonnulls(user_id, username) > 0)
);

-- `username` is a pseudonym once its member was erased.
CREATE TABLE member_changes (
    change_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('opted_out', 'opted_in', 'erased')),
    user_id    bigint,
    username   text,
    by         text NOT NULL,
    reason     text NOT NULL,
    changed_at timestamptz NOT NULL
);

-- Accounts that a delivery says are gone, until a worker has asked the forum and erased what is kept of them.
CREATE TABLE departures (
    user_id    bigint PRIMARY KEY,
    username   text NOT NULL,
    noticed_at timestamptz NOT NULL DEFAULT now()
);
