-- When the forum was read for the stored categories, or one of them was closed since: a reading that began before is older,
-- and must not open what was closed.

CREATE TABLE category_list (
    only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
    read_at  timestamptz NOT NULL
);
