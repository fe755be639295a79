-- compatible since: 16
-- Templates with their versions, broadcasts with their recipients, and emails that share one content.

CREATE TABLE templates (
    team_id           uuid        NOT NULL,
    id                uuid        NOT NULL,
    name              text        NOT NULL,
    alias             text,
    published_version uuid,
    draft_version     uuid,
    published_at      timestamptz,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    PRIMARY KEY (team_id, id),
    CONSTRAINT templates_team_alias_key UNIQUE (team_id, alias),
    CHECK ((published_version IS NULL) = (published_at IS NULL)),
    CHECK (published_version IS NOT NULL OR draft_version IS NOT NULL)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

CREATE TABLE template_versions (
    team_id       uuid        NOT NULL,
    id            uuid        NOT NULL,
    template_id   uuid        NOT NULL,
    sender        text,
    subject       text,
    reply_to_list json,
    html          text        NOT NULL,
    text          text,
    variables     json        NOT NULL,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (team_id, template_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

CREATE TABLE broadcasts (
    team_id        uuid        NOT NULL,
    id             uuid        NOT NULL,
    name           text,
    segment_id     uuid,
    topic_id       uuid,
    sender         text        NOT NULL,
    subject        text        NOT NULL,
    reply_to_list  json,
    preview_text   text,
    html           text,
    text           text,
    status         text        NOT NULL
                   CHECK (status IN ('draft', 'scheduled', 'queued', 'sent', 'canceled', 'failed')),
    created_at     timestamptz NOT NULL,
    scheduled_at   timestamptz,
    queued_at      timestamptz,
    resolved_at    timestamptz,
    sent_at        timestamptz,
    key_id         uuid,
    domain_id      uuid,
    domain_name    text,
    content_id     uuid,
    recipients     bigint,
    paused_at      timestamptz,
    paused_for     text,
    resumed_at     timestamptz,
    failed_for     text,
    PRIMARY KEY (team_id, id),
    CHECK (resolved_at IS NULL OR (queued_at IS NOT NULL AND recipients IS NOT NULL)),
    CHECK ((paused_at IS NULL) = (paused_for IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX broadcasts_segment ON broadcasts (team_id, segment_id) WHERE segment_id IS NOT NULL;
CREATE INDEX broadcasts_queued ON broadcasts (team_id, id) WHERE status = 'queued';

-- One row for each contact that a broadcast goes to: the guarantee of one copy. It waits while both are null.
CREATE TABLE broadcast_recipients (
    team_id      uuid NOT NULL,
    broadcast_id uuid NOT NULL,
    contact_id   uuid NOT NULL,
    email_id     uuid,
    skipped_for  text,
    PRIMARY KEY (team_id, broadcast_id, contact_id),
    CHECK (email_id IS NULL OR skipped_for IS NULL)
) WITH (
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);

-- What the copies of a broadcast share is here, and not in each of their emails.
ALTER TABLE contents
    ADD COLUMN sender        text,
    ADD COLUMN reply_to_list json,
    ADD COLUMN subject       text,
    ADD COLUMN preview_text  text;
ALTER TABLE recipients ADD COLUMN personal json;
ALTER TABLE emails ADD COLUMN template_id uuid;
