-- compatible since: 16
-- What mailbox providers did with the mail of domains, by UTC day, and up to when the history is counted (docs/decisions/0177).
-- The previous release neither reads nor writes them.
CREATE TABLE provider_days (
    team_id           uuid        NOT NULL,
    domain_id         uuid        NOT NULL,
    day               timestamptz NOT NULL,
    provider          text        NOT NULL,
    sent              bigint      NOT NULL,
    delivered         bigint      NOT NULL,
    delivery_delayed  bigint      NOT NULL,
    bounced           bigint      NOT NULL,
    bounced_permanent bigint      NOT NULL,
    complained        bigint      NOT NULL,
    PRIMARY KEY (team_id, domain_id, day, provider)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

CREATE TABLE provider_progress (
    id            smallint    NOT NULL PRIMARY KEY CHECK (id = 1),
    counted_until timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
