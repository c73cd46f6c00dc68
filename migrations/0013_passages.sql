-- Posts in several passages; and which profile answers is a switch beside the others (flags, embedding_profile).

-- How the profile's strategy splits a long post, in tokens of its model; 0 where every post is one text.
ALTER TABLE embedding_profiles ADD COLUMN passage_tokens integer NOT NULL DEFAULT 0 CHECK (passage_tokens >= 0);
ALTER TABLE embedding_profiles ADD COLUMN overlap_tokens integer NOT NULL DEFAULT 0 CHECK (overlap_tokens >= 0);

-- Until the switch is turned, the profile of models.embedder answers, as it always did.
DROP INDEX embedding_profiles_one_active;
ALTER TABLE embedding_profiles DROP COLUMN active;
