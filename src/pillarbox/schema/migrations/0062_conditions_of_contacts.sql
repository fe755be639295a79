-- compatible since: 16
-- Segments that are defined by conditions, and what conditions read of contacts (docs/decisions/0181). The previous release
-- takes such a segment for one without members.
ALTER TABLE segments ADD COLUMN conditions json;

-- When a contact last opened mail, followed a link, and bounced; machines do not count. A background job brings it up to date.
CREATE TABLE contact_engagement (
    team_id    uuid        NOT NULL,
    contact_id uuid        NOT NULL,
    opened_at  timestamptz,
    clicked_at timestamptz,
    bounced_at timestamptz,
    PRIMARY KEY (team_id, contact_id)
) WITH (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);

-- The events that a contact had, each name once: the first and the last time, and how often.
CREATE TABLE contact_events (
    team_id     uuid        NOT NULL,
    name        text        NOT NULL,
    contact_id  uuid        NOT NULL,
    first_at    timestamptz NOT NULL,
    last_at     timestamptz NOT NULL,
    occurrences bigint      NOT NULL,
    PRIMARY KEY (team_id, name, contact_id)
) WITH (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX contact_events_contact ON contact_events (team_id, contact_id);

-- Up to when the history of mail is in `contact_engagement`.
CREATE TABLE engagement_progress (
    id            smallint    NOT NULL PRIMARY KEY CHECK (id = 1),
    counted_until timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
