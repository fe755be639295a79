-- compatible since: 16
-- The audience of a team: contacts with their properties, segments and topics; imports; links in sent mail.

-- The address as it was given, where it differs from the compared one: a domain that is not ASCII.
ALTER TABLE suppressions ADD COLUMN email text;

CREATE TABLE contacts (
    team_id      uuid        NOT NULL,
    id           uuid        NOT NULL,
    address      text        NOT NULL,
    email        text,
    first_name   text,
    last_name    text,
    unsubscribed boolean     NOT NULL,
    properties   jsonb       NOT NULL DEFAULT '{}',
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (team_id, id),
    CONSTRAINT contacts_team_address_key UNIQUE (team_id, address)
) WITH (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);

CREATE TABLE contact_properties (
    team_id        uuid        NOT NULL,
    id             uuid        NOT NULL,
    number         integer     NOT NULL,
    key            text        NOT NULL,
    type           text        NOT NULL CHECK (type IN ('string', 'number', 'boolean')),
    fallback_value jsonb,
    created_at     timestamptz NOT NULL,
    deleted_at     timestamptz,
    PRIMARY KEY (team_id, id),
    CONSTRAINT contact_properties_team_number_key UNIQUE (team_id, number)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE UNIQUE INDEX contact_properties_team_key ON contact_properties (team_id, key) WHERE deleted_at IS NULL;

CREATE TABLE segments (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (team_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

CREATE TABLE segment_members (
    team_id    uuid        NOT NULL,
    segment_id uuid        NOT NULL,
    contact_id uuid        NOT NULL,
    added_at   timestamptz NOT NULL,
    PRIMARY KEY (team_id, segment_id, contact_id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX segment_members_contact ON segment_members (team_id, contact_id);

CREATE TABLE topics (
    team_id              uuid        NOT NULL,
    id                   uuid        NOT NULL,
    name                 text        NOT NULL,
    description          text,
    default_subscription text        NOT NULL CHECK (default_subscription IN ('opt_in', 'opt_out')),
    visibility           text        NOT NULL CHECK (visibility IN ('public', 'private')),
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    deleted_at           timestamptz,
    PRIMARY KEY (team_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

CREATE TABLE topic_choices (
    team_id      uuid        NOT NULL,
    contact_id   uuid        NOT NULL,
    topic_id     uuid        NOT NULL,
    subscription text        NOT NULL CHECK (subscription IN ('opt_in', 'opt_out')),
    chosen_at    timestamptz NOT NULL,
    PRIMARY KEY (team_id, contact_id, topic_id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);

CREATE TABLE contact_imports (
    team_id      uuid        NOT NULL,
    id           uuid        NOT NULL,
    status       text        NOT NULL CHECK (status IN ('queued', 'in_progress', 'completed', 'failed')),
    on_conflict  text        NOT NULL CHECK (on_conflict IN ('upsert', 'skip')),
    columns      json        NOT NULL,
    segments     json        NOT NULL,
    topics       json        NOT NULL,
    blob         text,
    size         bigint      NOT NULL,
    checkpoint   json,
    created      bigint      NOT NULL DEFAULT 0,
    updated      bigint      NOT NULL DEFAULT 0,
    skipped      bigint      NOT NULL DEFAULT 0,
    failed       bigint      NOT NULL DEFAULT 0,
    reason       text,
    created_at   timestamptz NOT NULL,
    started_at   timestamptz,
    completed_at timestamptz,
    PRIMARY KEY (team_id, id),
    CHECK ((completed_at IS NOT NULL) = (status IN ('completed', 'failed')))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

CREATE TABLE contact_import_errors (
    team_id    uuid   NOT NULL,
    import_id  uuid   NOT NULL,
    id         uuid   NOT NULL,
    row_number bigint NOT NULL,
    email      text,
    reason     text   NOT NULL,
    PRIMARY KEY (team_id, import_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

-- Global: a link arrives without a team.
CREATE TABLE link_keys (
    id         smallint    NOT NULL PRIMARY KEY CHECK (id > 0),
    sealed     bytea       NOT NULL,
    created_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
