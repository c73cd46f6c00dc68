-- Search by whole topics: the words of all a topic's posts, the mean of their vectors, and its first post. What is kept
-- here is written with the posts, in their transaction.

-- Looks up the words that no post has for those that resemble them.
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE INDEX document_frequencies_trigrams ON document_frequencies USING gin (lexeme gin_trgm_ops);

-- A posting also names its topic, so that a topic's words are counted without reading its posts. Made anew, since an
-- update of every row would leave as much dead space behind.
CREATE TABLE postings_with_topics (
    lexeme   text COLLATE "C" NOT NULL,
    post_id  bigint NOT NULL,
    topic_id bigint NOT NULL,
    tf       integer NOT NULL,
    length   integer NOT NULL
);
INSERT INTO postings_with_topics (lexeme, post_id, topic_id, tf, length)
SELECT lexeme, post_id, topic_id, tf, postings.length FROM postings JOIN posts USING (post_id)
ORDER BY lexeme, post_id;
DROP TABLE postings;
ALTER TABLE postings_with_topics RENAME TO postings;
ALTER TABLE postings ADD CONSTRAINT postings_pkey PRIMARY KEY (lexeme, post_id) INCLUDE (topic_id, tf, length);
CREATE INDEX postings_post ON postings (post_id);

-- How many lexemes its posts have together.
ALTER TABLE topics ADD COLUMN length integer NOT NULL DEFAULT 0;
UPDATE topics SET length = total.length
FROM (SELECT topic_id, sum(length) AS length FROM posts WHERE refusal IS NULL GROUP BY topic_id) AS total
WHERE total.topic_id = topics.topic_id;

CREATE VIEW public_topics AS
SELECT topic_id, topics.title, topics.slug, topics.length FROM topics JOIN categories USING (category_id)
WHERE topics.visible AND NOT topics.deleted AND topics.archetype <> 'private_message' AND NOT categories.read_restricted;

CREATE TABLE topic_embeddings (
    profile_id smallint NOT NULL,
    grain      text NOT NULL CHECK (grain IN ('mean', 'first')),
    topic_id   bigint NOT NULL REFERENCES topics ON DELETE CASCADE,
    embedding  halfvec NOT NULL CHECK (l2_norm(embedding) BETWEEN 0.998 AND 1.002),
    dimensions integer GENERATED ALWAYS AS (vector_dims(embedding)) STORED,
    PRIMARY KEY (profile_id, grain, topic_id),
    FOREIGN KEY (profile_id, dimensions) REFERENCES embedding_profiles (profile_id, dimensions)
);
CREATE INDEX topic_embeddings_topic ON topic_embeddings (topic_id);
ALTER TABLE topic_embeddings ALTER COLUMN embedding SET STORAGE PLAIN;

INSERT INTO topic_embeddings (profile_id, grain, topic_id, embedding)
SELECT profile_id, 'mean', topic_id, l2_normalize(avg(embedding)) FROM embeddings JOIN posts USING (post_id)
GROUP BY profile_id, topic_id HAVING l2_norm(avg(embedding)) > 0;
INSERT INTO topic_embeddings (profile_id, grain, topic_id, embedding)
SELECT DISTINCT ON (profile_id, topic_id) profile_id, 'first', topic_id, embedding
FROM embeddings JOIN posts USING (post_id) WHERE post_number = 1 ORDER BY profile_id, topic_id, post_id, passage;

ANALYZE topics, postings, topic_embeddings;
