-- Webhook deliveries, stored before they are acknowledged; the body goes once it has been used.

CREATE TABLE inbox (
    inbox_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    content_key bytea NOT NULL UNIQUE,
    instance    text NOT NULL,
    event       text NOT NULL,
    event_id    text NOT NULL,
    topic_id    bigint,
    post_id     bigint,
    received_at timestamptz NOT NULL DEFAULT now(),
    waiting     text[] NOT NULL,
    body        text
);
CREATE INDEX inbox_received ON inbox (received_at);
