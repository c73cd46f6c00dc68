-- What a configuration was found to be worth, and the configuration under which posts_pipeline was switched on.

CREATE TABLE evaluation_runs (
    run_id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    signature      text NOT NULL CHECK (signature ~ '^[0-9a-f]{64}$'),
    configuration  jsonb NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('eval', 'signed-off', 'override')),
    passed         boolean NOT NULL,
    dataset        text NOT NULL,
    dataset_sha256 text NOT NULL,
    limits         jsonb NOT NULL,
    figures        jsonb NOT NULL,
    recorded_at    timestamptz NOT NULL DEFAULT now(),
    recorded_by    text NOT NULL,
    reason         text NOT NULL,
    CONSTRAINT an_eval_names_its_dataset CHECK (kind <> 'eval' OR dataset <> '' AND dataset_sha256 <> '')
);
CREATE INDEX evaluation_runs_signature ON evaluation_runs (signature, run_id);

-- Null where it is not known: a pipeline that was on before this file answers in shadow until it is switched on anew.
ALTER TABLE flags ADD COLUMN signature text;
ALTER TABLE flag_changes ADD COLUMN signature text;
