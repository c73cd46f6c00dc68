-- What proves that an embedder is the one that made a profile's vectors, and the posts that it fails on.

CREATE TABLE embedding_references (
    profile_id smallint NOT NULL,
    text       text NOT NULL,
    query      boolean NOT NULL,
    embedding  halfvec NOT NULL CHECK (l2_norm(embedding) BETWEEN 0.998 AND 1.002),
    dimensions integer GENERATED ALWAYS AS (vector_dims(embedding)) STORED,
    made_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (profile_id, text, query),
    FOREIGN KEY (profile_id, dimensions) REFERENCES embedding_profiles (profile_id, dimensions)
);

-- Equal for equal inputs of every text strategy: tells whether a post is still what its model failed on.
CREATE FUNCTION embedding_source(title text, category text, tags text[], body text) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE
RETURN sha256(convert_to(ROW(title, category, tags, body)::text, 'UTF8'));

-- A post has a vector under a profile, or a row here, or neither yet; never both.
CREATE TABLE embedding_failures (
    profile_id smallint NOT NULL REFERENCES embedding_profiles,
    post_id    bigint NOT NULL REFERENCES posts ON DELETE CASCADE,
    digest     bytea NOT NULL,
    source     bytea NOT NULL,
    error      text NOT NULL,
    failed_at  timestamptz NOT NULL DEFAULT now(),
    attempts   integer NOT NULL DEFAULT 1,
    PRIMARY KEY (profile_id, post_id)
);
CREATE INDEX embedding_failures_post ON embedding_failures (post_id);
