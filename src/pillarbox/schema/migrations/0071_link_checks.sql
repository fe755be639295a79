-- compatible since: 16
-- Links of mail that was not sent yet, and what their servers answered (docs/decisions/0192). The previous release
-- neither reads nor writes them.
CREATE TABLE link_checks (
    team_id     uuid        NOT NULL,
    id          uuid        NOT NULL,
    url         text        NOT NULL,
    status      text        NOT NULL CHECK (status IN ('waiting', 'ok', 'broken', 'unreachable', 'refused')),
    reason      text,
    http_status integer,
    asked_at    timestamptz NOT NULL,
    checked_at  timestamptz,
    PRIMARY KEY (team_id, id),
    CHECK ((checked_at IS NULL) = (status = 'waiting'))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

CREATE INDEX link_checks_asked_at_idx ON link_checks (asked_at);
