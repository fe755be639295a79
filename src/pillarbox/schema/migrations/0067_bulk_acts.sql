-- compatible since: 16
-- Acts on many contacts, which a job does (docs/decisions/0181). The previous release neither reads nor writes them.
CREATE TABLE contact_bulk_acts (
    team_id     uuid        NOT NULL,
    id          uuid        NOT NULL,
    kind        text        NOT NULL
                CHECK (kind IN ('add_to_segment', 'remove_from_segment', 'unsubscribe', 'delete')),
    status      text        NOT NULL
                CHECK (status IN ('queued', 'in_progress', 'completed', 'stopped', 'failed')),
    segment_id  uuid,
    contact_ids uuid[],
    conditions  json,
    search      text,
    position    uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    total       bigint,
    done        bigint      NOT NULL DEFAULT 0,
    changed     bigint      NOT NULL DEFAULT 0,
    reason      text,
    created_at  timestamptz NOT NULL,
    ended_at    timestamptz,
    PRIMARY KEY (team_id, id),
    CHECK ((ended_at IS NOT NULL) = (status IN ('completed', 'stopped', 'failed')))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
