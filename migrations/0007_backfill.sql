-- Reading a whole forum: how far each crawl has come, and which of its topics lack posts.

CREATE TABLE crawls (
    source     text PRIMARY KEY,
    stage      text NOT NULL CHECK (stage IN ('topics', 'posts', 'gaps', 'done')),
    topic_page integer NOT NULL,
    newest     bigint NOT NULL,
    before     bigint NOT NULL,
    floor      bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- The number of a topic's last post as the forum said, until that many are stored or all that can be seen were read.
CREATE TABLE crawled_topics (
    source   text NOT NULL,
    topic_id bigint NOT NULL,
    posts    integer NOT NULL,
    PRIMARY KEY (source, topic_id)
);

-- Whatever changes what a topic is, its words withdrawn included, dates it: a reading of before is older.
CREATE FUNCTION date_topic() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.synced_at := clock_timestamp();
    RETURN NEW;
END
$$;
CREATE TRIGGER topics_dated
BEFORE INSERT OR UPDATE OF title, slug, category_id, archetype, visible, closed, archived, deleted, tags ON topics
FOR EACH ROW EXECUTE FUNCTION date_topic();
