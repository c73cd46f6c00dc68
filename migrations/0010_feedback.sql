-- What moderators decide about an answer once it is made, what members do with it, the questions that test Ariane since
-- a moderator said what answers them, and the questions that stayed without an answer.

-- Every trace with what the moderators' pages need beside it. `closed` is for administrators only: a private message, or
-- a place that not everybody reads as far as we know.
CREATE VIEW shown_traces AS
SELECT trace_id, traces.post_id, traces.topic_id, recorded_at, traces.outcome AS recorded_outcome, reason, zone, mode,
       traces.trace, traces.private OR coalesce(categories.read_restricted, true) AS closed,
       coalesce(topics.category_id, answers.category_id) AS category_id, categories.name AS category,
       coalesce(topics.title, '') AS title, coalesce(topics.slug, '') AS slug,
       coalesce(answers.post_number, posts.post_number) AS post_number,
       coalesce(answers.outcome, traces.outcome) AS outcome, answers.raw, coalesce(answers.cited, '{}') AS cited,
       reply_post_id, reply_post_number, finished_at
FROM traces LEFT JOIN answers ON answers.post_id = traces.post_id
     LEFT JOIN topics ON topics.topic_id = traces.topic_id
     LEFT JOIN categories ON categories.category_id = coalesce(topics.category_id, answers.category_id)
     LEFT JOIN posts ON posts.post_id = traces.post_id
-- The one that tells most of its post: it was answered, or at least looked into, else the last.
WHERE NOT EXISTS (
    SELECT FROM traces AS other WHERE other.post_id = traces.post_id
    AND (other.outcome <> 'skipped', other.trace <> '{}', other.trace_id)
      > (traces.outcome <> 'skipped', traces.trace <> '{}', traces.trace_id)
);

-- What a moderator asked for; the worker does it and says what came of it. `raw` is the text of an edit until it is
-- done. Each is done once: a second of its kind is refused while one waits or was done.
CREATE TABLE answer_deeds (
    deed_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    post_id    bigint NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('post', 'hide', 'edit', 'wrong', 'test_question')),
    reason     text NOT NULL,
    raw        text,
    by         text NOT NULL,
    by_user_id bigint,
    asked_at   timestamptz NOT NULL,
    outcome    text,
    done_at    timestamptz,
    CONSTRAINT a_deed_is_done_with_an_outcome CHECK ((done_at IS NULL) = (outcome IS NULL))
);
CREATE INDEX answer_deeds_post ON answer_deeds (post_id, deed_id);
CREATE UNIQUE INDEX answer_deeds_once ON answer_deeds (post_id, kind)
    WHERE kind IN ('post', 'hide', 'edit') AND coalesce(outcome, 'done') = 'done';

-- What members do with a reply of ours, and what they say of it; no text. `about_post_id` is the reply, or the post that
-- says so; `by_user_id` is 0 where the forum doesn't tell.
CREATE TABLE answer_signals (
    post_id       bigint NOT NULL,
    kind          text NOT NULL CHECK (kind IN (
        'liked', 'flagged', 'solved', 'solved_by_other', 'thanked', 'objected', 'deleted', 'hidden'
    )),
    about_post_id bigint NOT NULL,
    by_user_id    bigint NOT NULL DEFAULT 0,
    noticed_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (post_id, kind, about_post_id, by_user_id)
);
CREATE INDEX answer_signals_noticed ON answer_signals (noticed_at);
CREATE INDEX answer_signals_about ON answer_signals (about_post_id);
CREATE INDEX answers_reply ON answers (reply_post_id) WHERE reply_post_id IS NOT NULL;

-- In the shape of a dataset's questions.yml: `golden` is its list of {topic, posts, grade}.
CREATE TABLE test_questions (
    post_id         bigint PRIMARY KEY,
    slice           text NOT NULL,
    lang            text NOT NULL,
    question        text NOT NULL,
    golden          jsonb NOT NULL,
    note            text NOT NULL,
    made_by         text NOT NULL,
    made_by_user_id bigint,
    made_at         timestamptz NOT NULL
);

-- `group_id` is the post of the group's first question; `vector` is of the profile named, null where words alone told
-- which questions are alike.
CREATE TABLE unanswered (
    post_id  bigint PRIMARY KEY,
    asked_at timestamptz NOT NULL,
    reason   text NOT NULL,
    lang     text NOT NULL,
    question text NOT NULL,
    group_id bigint,
    profile  text,
    vector   real[],
    CONSTRAINT a_vector_has_a_profile CHECK ((profile IS NULL) = (vector IS NULL))
);
CREATE INDEX unanswered_group ON unanswered (group_id, asked_at);
