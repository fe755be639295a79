-- compatible since: 16
-- Pieces of answers about metrics (docs/decisions/0120).

-- What an answer said of a period that is over, as JSON. `id` is a digest of the question and the period, `versions`
-- are those of its UTC days from `first_day` on (null: a day without rollups) when it was counted. It serves while
-- these are the versions of its days, and may be removed at any time.
CREATE TABLE metric_pieces (
    team_id   uuid        NOT NULL,
    id        uuid        NOT NULL,
    first_day timestamptz NOT NULL,
    versions  uuid[]      NOT NULL,
    rows      integer     NOT NULL,
    counts    bigint[]    NOT NULL,
    content   bytea       NOT NULL,
    made_at   timestamptz NOT NULL,
    PRIMARY KEY (team_id, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_limit = 1000,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_limit = 1000
);
ALTER TABLE metric_pieces ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE INDEX metric_pieces_made ON metric_pieces (made_at);
