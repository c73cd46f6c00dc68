-- Webhook deliveries, stored before they are acknowledged. `state` is a post's snapshot without its text; `cooked`,
-- `topic_title` and `topic_slug` are that text: never kept of a private place, dropped elsewhere once every task in
-- `waiting` has used it.

CREATE TABLE inbox (
    inbox_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    content_key bytea NOT NULL UNIQUE,
    instance    text NOT NULL,
    event       text NOT NULL,
    event_id    text NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    waiting     text[] NOT NULL,
    state       jsonb,
    cooked      text,
    topic_title text,
    topic_slug  text
);
CREATE INDEX inbox_received ON inbox (received_at);

-- How far each archive has been read, so that an interrupted backfill goes on where it stopped.
CREATE TABLE backfills (
    source     text PRIMARY KEY,
    topics     integer NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);
