-- compatible since: 16
-- The last run of `doctor` and of `verify`, with its result. The previous release neither reads nor writes it.
CREATE TABLE examinations (
    kind        text        NOT NULL PRIMARY KEY CHECK (kind IN ('doctor', 'verify')),
    run_id      uuid        NOT NULL,
    started_at  timestamptz NOT NULL,
    ends_by     timestamptz NOT NULL,
    finished_at timestamptz,
    is_healthy  boolean,
    result      json
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
