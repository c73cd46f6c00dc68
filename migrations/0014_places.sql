-- One rule of who may see what was asked where, for every list and count; and a moderator's wish to see what a reply of
-- ours says now.

-- For administrators only: a private message, be it since, or a place that not everybody reads as far as we know.
CREATE FUNCTION is_closed(private boolean, archetype text, read_restricted boolean) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN private OR coalesce(archetype = 'private_message', false) OR coalesce(read_restricted, true);

CREATE OR REPLACE VIEW shown_traces AS
SELECT trace_id, traces.post_id, traces.topic_id, recorded_at, traces.outcome AS recorded_outcome, reason, zone, mode,
       traces.trace, is_closed(traces.private, topics.archetype, categories.read_restricted) AS closed,
       coalesce(topics.category_id, answers.category_id) AS category_id, categories.name AS category,
       coalesce(topics.title, '') AS title, coalesce(topics.slug, '') AS slug,
       coalesce(answers.post_number, posts.post_number) AS post_number,
       coalesce(answers.outcome, traces.outcome) AS outcome, answers.raw, coalesce(answers.cited, '{}') AS cited,
       reply_post_id, reply_post_number, finished_at
FROM traces LEFT JOIN answers ON answers.post_id = traces.post_id
     LEFT JOIN topics ON topics.topic_id = traces.topic_id
     LEFT JOIN categories ON categories.category_id = coalesce(topics.category_id, answers.category_id)
     LEFT JOIN posts ON posts.post_id = traces.post_id
WHERE NOT EXISTS (
    SELECT FROM traces AS other WHERE other.post_id = traces.post_id
    AND (other.outcome <> 'skipped', other.trace <> '{}', other.trace_id)
      > (traces.outcome <> 'skipped', traces.trace <> '{}', traces.trace_id)
);

-- `raw` of a `read` is what our post said when the worker looked, for the moderator who corrects it.
ALTER TABLE answer_deeds DROP CONSTRAINT answer_deeds_kind_check;
ALTER TABLE answer_deeds ADD CONSTRAINT answer_deeds_kind_check
    CHECK (kind IN ('post', 'hide', 'edit', 'wrong', 'test_question', 'read'));
CREATE UNIQUE INDEX answer_deeds_one_look ON answer_deeds (post_id) WHERE kind = 'read' AND outcome IS NULL;
