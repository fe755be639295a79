-- Webhooks: who wants which events, the events themselves, their deliveries and what became of them.

CREATE TABLE webhooks (
    team_id          uuid        NOT NULL,
    id               uuid        NOT NULL,
    created_at       timestamptz NOT NULL,
    kind             text        NOT NULL DEFAULT 'endpoint' CHECK (kind IN ('endpoint', 'listener')),
    endpoint         text        NOT NULL,
    events           text[]      NOT NULL,
    status           text        NOT NULL DEFAULT 'enabled' CHECK (status IN ('enabled', 'disabled')),
    epoch            integer     NOT NULL DEFAULT 0,
    secrets          bytea[]     NOT NULL,
    secret_ends      timestamptz[] NOT NULL,
    failing_since    timestamptz,
    failing_event    uuid,
    failing_several  boolean     NOT NULL DEFAULT false,
    told_failing_at  timestamptz,
    last_failure_at  timestamptz,
    last_status_code smallint,
    seen_at          timestamptz,
    PRIMARY KEY (team_id, id),
    CHECK (cardinality(secrets) > 0 AND cardinality(secrets) = cardinality(secret_ends))
);

CREATE TABLE webhook_events (
    team_id uuid        NOT NULL,
    id      uuid        NOT NULL,
    kind    text        NOT NULL,
    at      timestamptz NOT NULL,
    payload bytea       NOT NULL,
    PRIMARY KEY (team_id, id)
);

CREATE TABLE webhook_deliveries (
    team_id      uuid        NOT NULL,
    webhook_id   uuid        NOT NULL,
    event_id     uuid        NOT NULL,
    replay       uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    kind         text        NOT NULL,
    at           timestamptz NOT NULL,
    subject_id   uuid,
    position     smallint,
    detail       json,
    epoch        integer     NOT NULL,
    due_at       timestamptz NOT NULL,
    owner        uuid,
    leased_until timestamptz,
    attempt      integer     NOT NULL DEFAULT 0,
    tries        smallint    NOT NULL DEFAULT 0,
    PRIMARY KEY (team_id, webhook_id, event_id, replay),
    CHECK ((owner IS NULL) = (leased_until IS NULL))
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_analyze_threshold = 5000
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (team_id, webhook_id, due_at, event_id)
 WHERE owner IS NULL;
CREATE INDEX webhook_deliveries_leased ON webhook_deliveries (owner, leased_until) WHERE owner IS NOT NULL;
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (team_id, webhook_id, owner) WHERE owner IS NOT NULL;

CREATE TABLE webhook_outcomes (
    team_id    uuid        NOT NULL,
    webhook_id uuid        NOT NULL,
    event_id   uuid        NOT NULL,
    kind       text        NOT NULL,
    at         timestamptz NOT NULL,
    status     text        NOT NULL CHECK (status IN ('success', 'failed')),
    subject_id uuid,
    position   smallint,
    detail     json,
    PRIMARY KEY (team_id, webhook_id, event_id)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE TABLE webhook_attempts (
    team_id          uuid        NOT NULL,
    webhook_id       uuid        NOT NULL,
    event_id         uuid        NOT NULL,
    id               uuid        NOT NULL,
    sent_at          timestamptz NOT NULL,
    http_status_code smallint    NOT NULL,
    response         text        NOT NULL,
    PRIMARY KEY (team_id, webhook_id, event_id, id)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
