-- Live changes: the order of what was read and what was delivered, what is kept of posts beside the index, and the
-- reconciler's place.

-- When the forum was read for this state, or a removal noticed: a reading that began before is older. Null for a
-- delivery's snapshot, which its own date orders.
ALTER TABLE posts ADD COLUMN read_at timestamptz;

-- A topic that the public doesn't see has no title: index_banners, which no table knows, has decided when it was stored.
CREATE OR REPLACE VIEW public_posts AS
SELECT posts.post_id, posts.topic_id, posts.post_number, topics.title, topics.slug, posts.body, posts.username,
       posts.created_at
FROM posts JOIN topics USING (topic_id) JOIN categories USING (category_id)
WHERE posts.refusal IS NULL AND topics.visible AND NOT topics.deleted AND topics.title <> ''
  AND topics.archetype IN ('regular', 'banner') AND NOT categories.read_restricted;

CREATE OR REPLACE VIEW public_topics AS
SELECT topic_id, topics.title, topics.slug, topics.length FROM topics JOIN categories USING (category_id)
WHERE topics.visible AND NOT topics.deleted AND topics.title <> '' AND topics.archetype IN ('regular', 'banner')
  AND NOT categories.read_restricted;

CREATE INDEX topics_without_title ON topics (topic_id) WHERE title = '';

-- The posts whose words a trace holds, so that they are found when a post is withdrawn.
CREATE FUNCTION quoted_posts(trace jsonb) RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(
    SELECT DISTINCT (quoted ->> 'post_id')::bigint FROM jsonb_path_query(
        trace, '$.*[*] ? (exists (@.post_id)) ? (@.title != "" || @.slug != "" || @.body != "" || @.excerpt != "")'
    ) AS quoted
);
ALTER TABLE traces ADD COLUMN quoted bigint[] GENERATED ALWAYS AS (quoted_posts(trace)) STORED;
CREATE INDEX traces_quoted ON traces USING gin (quoted);
CREATE INDEX answers_cited ON answers USING gin (cited);
CREATE INDEX inbox_posts ON inbox (((state ->> 'id')::bigint));

-- Posted answers that cite what the public no longer sees where it was: moderators decide what becomes of them.
-- `answer_post_id` is the ledger's key, the post that asked.
CREATE TABLE source_alerts (
    answer_post_id bigint NOT NULL,
    source_post_id bigint NOT NULL,
    kind           text NOT NULL,
    noticed_at     timestamptz NOT NULL DEFAULT now(),
    seen_at        timestamptz,
    seen_by        text,
    PRIMARY KEY (answer_post_id, source_post_id)
);
CREATE INDEX source_alerts_unseen ON source_alerts (noticed_at) WHERE seen_at IS NULL;

-- How far the reconciler's walks over the forum have come.
CREATE TABLE reconciliation (
    walk       text PRIMARY KEY,
    position   bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);
