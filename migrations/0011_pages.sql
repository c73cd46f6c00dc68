-- What the moderators' pages show of the workers, questions tried in them, and the gate's rules added there.

-- Whether a worker's parts do what they are configured for; null while that isn't known.
CREATE TABLE part_states (
    worker  text NOT NULL,
    part    text NOT NULL,
    works   boolean,
    seen_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (worker, part)
);
CREATE INDEX part_states_seen ON part_states (seen_at);

-- A question that a moderator asks for himself: answered by a worker, posted nowhere, gone after a day.
CREATE TABLE trials (
    trial_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    asked_by    text NOT NULL,
    question    text NOT NULL,
    lang        text NOT NULL,
    asked_at    timestamptz NOT NULL,
    state       text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    ended_at    timestamptz,
    error       text,
    result      jsonb,
    CONSTRAINT an_ended_trial_says_when CHECK ((state IN ('done', 'failed')) = (ended_at IS NOT NULL)),
    CONSTRAINT a_done_trial_has_a_result CHECK ((state = 'done') = (result IS NOT NULL))
);
CREATE INDEX trials_asked ON trials (asked_by, asked_at);

-- Rules that moderators add to those of the files, as their YAML has them in JSON; and every change of them.
CREATE TABLE gate_rules (
    rule_id  text PRIMARY KEY,
    rule     jsonb NOT NULL,
    added_at timestamptz NOT NULL DEFAULT now(),
    added_by text NOT NULL
);

CREATE TABLE gate_rule_changes (
    change_id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    rule_id            text NOT NULL,
    old_rule           jsonb,
    new_rule           jsonb,
    changed_at         timestamptz NOT NULL DEFAULT now(),
    changed_by         text NOT NULL,
    changed_by_user_id bigint,
    reason             text NOT NULL
);
