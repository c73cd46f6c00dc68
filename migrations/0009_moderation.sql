-- The moderators' sign-in: attempts, sessions and first set-up links, none of them usable by who reads this table; and
-- which account of the forum turned a switch.

CREATE TABLE sign_ins (
    nonce_sha256   bytea PRIMARY KEY,
    browser_sha256 bytea NOT NULL,
    next_path      text NOT NULL,
    started_at     timestamptz NOT NULL
);
CREATE INDEX sign_ins_started ON sign_ins (started_at);

CREATE TABLE sign_in_links (
    token_sha256 bytea PRIMARY KEY,
    made_by      text NOT NULL,
    made_at      timestamptz NOT NULL
);

CREATE TABLE moderator_sessions (
    session_sha256 bytea PRIMARY KEY,
    username       text NOT NULL,
    user_id        bigint,
    admin          boolean NOT NULL,
    moderator      boolean NOT NULL,
    groups         text[] NOT NULL,
    began_at       timestamptz NOT NULL,
    seen_at        timestamptz NOT NULL
);
CREATE INDEX moderator_sessions_seen ON moderator_sessions (seen_at);

-- Null for a change from the command line, or before this file.
ALTER TABLE flag_changes ADD COLUMN changed_by_user_id bigint;

-- Where a question was asked, for the limits of its category; a private message's trace is for administrators only.
ALTER TABLE answers ADD COLUMN category_id bigint;
ALTER TABLE answers ADD COLUMN private boolean NOT NULL DEFAULT false;
CREATE INDEX answers_category ON answers (category_id, claimed_at);
ALTER TABLE traces ADD COLUMN private boolean NOT NULL DEFAULT false;
