-- The ledger (one row an asking post: what makes a reply happen once), the traces, and the moderators' switches.

CREATE TABLE answers (
    post_id           bigint PRIMARY KEY,
    topic_id          bigint NOT NULL,
    post_number       integer NOT NULL,
    user_id           bigint,
    claimed_at        timestamptz NOT NULL,
    result            text,
    raw               text,
    cited             bigint[] NOT NULL DEFAULT '{}',
    trace             jsonb,
    outcome           text,
    reply_post_id     bigint,
    reply_post_number integer,
    finished_at       timestamptz,
    CONSTRAINT a_finished_answer_has_an_outcome CHECK ((finished_at IS NULL) = (outcome IS NULL)),
    CONSTRAINT a_text_has_a_result CHECK ((raw IS NULL) = (result IS NULL))
);
CREATE INDEX answers_topic ON answers (topic_id, claimed_at);
CREATE INDEX answers_member ON answers (user_id, claimed_at);
CREATE INDEX answers_claimed ON answers (claimed_at);

CREATE TABLE traces (
    trace_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    post_id     bigint NOT NULL,
    topic_id    bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    outcome     text NOT NULL,
    reason      text,
    zone        text,
    mode        text,
    trace       jsonb NOT NULL
);
CREATE INDEX traces_post ON traces (post_id);
CREATE INDEX traces_recorded ON traces (recorded_at);

CREATE TABLE flags (
    name       text PRIMARY KEY,
    value      text NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now(),
    changed_by text NOT NULL
);

CREATE TABLE flag_changes (
    change_id  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL,
    old_value  text,
    new_value  text NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now(),
    changed_by text NOT NULL,
    reason     text NOT NULL
);
