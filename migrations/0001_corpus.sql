-- The index: what an anonymous reader of the forum sees, its keywords and its vectors.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE categories (
    category_id     bigint PRIMARY KEY,
    name            text NOT NULL,
    slug            text NOT NULL,
    parent_id       bigint,
    read_restricted boolean NOT NULL
);

-- Title, slug and tags are kept only while the public sees the topic.
CREATE TABLE topics (
    topic_id    bigint PRIMARY KEY,
    title       text NOT NULL,
    slug        text NOT NULL,
    category_id bigint,
    archetype   text NOT NULL,
    visible     boolean NOT NULL,
    closed      boolean NOT NULL,
    archived    boolean NOT NULL,
    deleted     boolean NOT NULL,
    tags        text[] NOT NULL,
    synced_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX topics_category ON topics (category_id);

-- A row stays when its post leaves the index: its state then refuses older snapshots. A post that was removed before it
-- was ever seen has no topic.
CREATE TABLE posts (
    post_id              bigint PRIMARY KEY,
    topic_id             bigint REFERENCES topics,
    post_number          integer NOT NULL,
    post_type            smallint NOT NULL,
    user_id              bigint,
    username             text NOT NULL,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    reply_to_post_number integer,
    refusal              text,
    body                 text,
    length               integer NOT NULL DEFAULT 0,
    CONSTRAINT only_eligible_posts_have_text CHECK ((refusal IS NULL) = (body IS NOT NULL)),
    CONSTRAINT only_removed_posts_lack_a_topic CHECK (topic_id IS NOT NULL OR refusal = 'deleted')
);
CREATE INDEX posts_topic ON posts (topic_id, post_number);

-- What an anonymous reader sees at this moment, whatever the index still holds.
CREATE VIEW public_posts AS
SELECT posts.post_id, posts.topic_id, posts.post_number, topics.title, topics.slug, posts.body, posts.username,
       posts.created_at
FROM posts JOIN topics USING (topic_id) JOIN categories USING (category_id)
WHERE posts.refusal IS NULL AND topics.visible AND NOT topics.deleted AND topics.archetype <> 'private_message'
  AND NOT categories.read_restricted;

-- Keyword search: BM25 over these two tables (Postgres full text has no inverse document frequency). They are written
-- with their posts and never by themselves: a foreign key would be checked once a term, which is most of the work.
CREATE TABLE postings (
    lexeme  text COLLATE "C" NOT NULL,
    post_id bigint NOT NULL,
    tf      integer NOT NULL,
    length  integer NOT NULL,
    PRIMARY KEY (lexeme, post_id) INCLUDE (tf, length)
);
CREATE INDEX postings_post ON postings (post_id);

-- How many posts have each lexeme. Half-empty pages: frequent words are updated with every post, in place.
CREATE TABLE document_frequencies (
    lexeme text COLLATE "C" PRIMARY KEY,
    posts  integer NOT NULL
) WITH (fillfactor = 50);

-- Vectors: several profiles of different dimensions side by side.
CREATE TABLE embedding_profiles (
    profile_id    smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model         text NOT NULL,
    strategy      integer NOT NULL,
    version       integer NOT NULL,
    dimensions    integer NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),
    window_tokens integer NOT NULL CHECK (window_tokens > 0),
    index_kind    text NOT NULL CHECK (index_kind IN ('exact', 'hnsw_halfvec', 'hnsw_binary')),
    active        boolean NOT NULL DEFAULT false,
    UNIQUE (model, strategy, version),
    UNIQUE (profile_id, dimensions)
);
CREATE UNIQUE INDEX embedding_profiles_one_active ON embedding_profiles (active) WHERE active;

CREATE TABLE embeddings (
    profile_id smallint NOT NULL,
    post_id    bigint NOT NULL REFERENCES posts ON DELETE CASCADE,
    passage    smallint NOT NULL CHECK (passage >= 0),
    digest     bytea NOT NULL,
    embedding  halfvec NOT NULL CHECK (l2_norm(embedding) BETWEEN 0.998 AND 1.002),
    dimensions integer GENERATED ALWAYS AS (vector_dims(embedding)) STORED,
    PRIMARY KEY (profile_id, post_id, passage),
    FOREIGN KEY (profile_id, dimensions) REFERENCES embedding_profiles (profile_id, dimensions)
);
CREATE INDEX embeddings_post ON embeddings (post_id);
-- halfvec(1024) is just over the TOAST limit: in line, a scan need not fetch each vector apart.
ALTER TABLE embeddings ALTER COLUMN embedding SET STORAGE PLAIN;
