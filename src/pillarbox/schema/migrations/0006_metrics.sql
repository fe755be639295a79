-- Rollups: what happened, counted by time, domain and broadcast.

CREATE TABLE rollups (
    team_id              uuid        NOT NULL,
    level                smallint    NOT NULL CHECK (level BETWEEN 0 AND 3),
    start                timestamptz NOT NULL,
    domain_id            uuid        NOT NULL,
    domain_name          text        NOT NULL,
    broadcast_id         uuid        NOT NULL,
    received             bigint      NOT NULL,
    sent                 bigint      NOT NULL,
    delivered            bigint      NOT NULL,
    delivery_delayed     bigint      NOT NULL,
    failed               bigint      NOT NULL,
    suppressed           bigint      NOT NULL,
    bounced_transient    bigint      NOT NULL,
    bounced_permanent    bigint      NOT NULL,
    bounced_undetermined bigint      NOT NULL,
    opened               bigint      NOT NULL,
    clicked              bigint      NOT NULL,
    unique_opened        bigint      NOT NULL,
    unique_clicked       bigint      NOT NULL,
    complained           bigint      NOT NULL,
    unsubscribed         bigint      NOT NULL,
    PRIMARY KEY (team_id, level, start, domain_id, domain_name, broadcast_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

ALTER TABLE metric_increments SET (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX timeline_at ON timeline USING brin (at) WITH (pages_per_range = 16, autosummarize = on);
