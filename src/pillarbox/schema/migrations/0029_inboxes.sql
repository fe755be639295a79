-- compatible since: 16
-- Inboxes with their labels, threads, messages and drafts.

-- Which inbox an address means. Of a live inbox alone: deleting one frees its addresses.
CREATE TABLE directory_inboxes (
    address      text    NOT NULL,
    team_id      uuid    NOT NULL,
    inbox_id     uuid    NOT NULL,
    is_forwarded boolean NOT NULL,
    PRIMARY KEY (address)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX directory_inboxes_inbox ON directory_inboxes (team_id, inbox_id);

-- Whoever changes the threads or the counts of an inbox locks its row first.
CREATE TABLE inboxes (
    team_id           uuid        NOT NULL,
    id                uuid        NOT NULL,
    name              text        NOT NULL,
    email_address     text        NOT NULL,
    receiving_address text,
    from_name         text,
    domain_id         uuid        NOT NULL,
    unread            bigint      NOT NULL DEFAULT 0,
    drafts            bigint      NOT NULL DEFAULT 0,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    PRIMARY KEY (team_id, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX inboxes_domain ON inboxes (team_id, domain_id);

CREATE TABLE inbox_agents (
    team_id      uuid        NOT NULL,
    inbox_id     uuid        NOT NULL,
    id           uuid        NOT NULL,
    instructions text,
    tone         text,
    actions      text[]      NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (team_id, inbox_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- `name_key` is the name as it is compared.
CREATE TABLE inbox_labels (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    inbox_id   uuid        NOT NULL,
    name       text        NOT NULL,
    name_key   text        NOT NULL,
    color      text        NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (team_id, id),
    CONSTRAINT inbox_labels_name UNIQUE (team_id, inbox_id, name_key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- `messages`, `inbound`, `unread` and `drafts` count what the thread has. `subject_key` is the subject
-- as it is compared (inboxes.md 9.6), hashed.
CREATE TABLE inbox_threads (
    team_id         uuid        NOT NULL,
    id              uuid        NOT NULL,
    inbox_id        uuid        NOT NULL,
    subject         text,
    subject_key     bigint,
    folder          text        NOT NULL CHECK (folder IN ('inbox', 'archive', 'spam', 'sent', 'trash')),
    messages        integer     NOT NULL CHECK (messages > 0),
    inbound         integer     NOT NULL CHECK (inbound BETWEEN 0 AND messages),
    unread          integer     NOT NULL CHECK (unread BETWEEN 0 AND inbound),
    drafts          integer     NOT NULL DEFAULT 0 CHECK (drafts >= 0),
    has_attachment  boolean     NOT NULL,
    last_message_id uuid        NOT NULL,
    received_at     timestamptz NOT NULL,
    purge_at        timestamptz,
    assignee        text,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (team_id, id),
    CHECK ((folder = 'trash') = (purge_at IS NOT NULL))
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX inbox_threads_unread ON inbox_threads (team_id, inbox_id, received_at, id) WHERE unread > 0;
CREATE INDEX inbox_threads_with_sent ON inbox_threads (team_id, inbox_id, received_at, id)
 WHERE messages > inbound AND folder NOT IN ('spam', 'trash');
CREATE INDEX inbox_threads_subject ON inbox_threads (team_id, inbox_id, subject_key, received_at)
 WHERE subject_key IS NOT NULL;
CREATE INDEX inbox_threads_purge ON inbox_threads (team_id, purge_at) WHERE purge_at IS NOT NULL;

CREATE TABLE inbox_thread_labels (
    team_id   uuid NOT NULL,
    thread_id uuid NOT NULL,
    label_id  uuid NOT NULL,
    PRIMARY KEY (team_id, thread_id, label_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX inbox_thread_labels_label ON inbox_thread_labels (team_id, label_id, thread_id);

-- What an inbox knows of a message; its bodies are those of the received or sent email of the same id.
-- `message_key` is the Message-ID without brackets, hashed, and `body_key` the octets behind the header.
-- `searched` is what words are looked for in.
CREATE TABLE inbox_messages (
    team_id       uuid        NOT NULL,
    inbox_id      uuid        NOT NULL,
    id            uuid        NOT NULL,
    thread_id     uuid        NOT NULL,
    direction     text        NOT NULL CHECK (direction IN ('inbound', 'outbound')),
    received_at   timestamptz NOT NULL,
    sender        text        NOT NULL,
    sender_key    text        NOT NULL,
    to_list       json        NOT NULL,
    cc_list       json,
    bcc_list      json,
    reply_to_list json,
    subject       text,
    message_id    text,
    message_key   bigint,
    body_key      bytea,
    attachments   smallint    NOT NULL,
    is_read       boolean     NOT NULL,
    is_automatic  boolean     NOT NULL,
    searched      text        NOT NULL,
    PRIMARY KEY (team_id, inbox_id, id)
) WITH (
    toast_tuple_target = 1024,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX inbox_messages_thread ON inbox_messages (team_id, thread_id, received_at, id);
CREATE INDEX inbox_messages_key ON inbox_messages (team_id, inbox_id, message_key, id)
 WHERE message_key IS NOT NULL;

-- `version` changes with each change, so that one that was decided by an older state is refused.
CREATE TABLE inbox_drafts (
    team_id           uuid        NOT NULL,
    id                uuid        NOT NULL,
    inbox_id          uuid        NOT NULL,
    thread_id         uuid,
    reply_to_email_id uuid,
    to_list           json,
    cc_list           json        NOT NULL,
    bcc_list          json        NOT NULL,
    subject           text,
    html              text,
    text              text,
    email_id          uuid,
    version           bigint      NOT NULL DEFAULT 1,
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL,
    PRIMARY KEY (team_id, id),
    CHECK (reply_to_email_id IS NULL OR thread_id IS NOT NULL)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX inbox_drafts_unsent ON inbox_drafts (team_id, inbox_id, updated_at, id) WHERE email_id IS NULL;
CREATE UNIQUE INDEX inbox_drafts_reply ON inbox_drafts (team_id, inbox_id, reply_to_email_id)
 WHERE email_id IS NULL AND reply_to_email_id IS NOT NULL;
CREATE INDEX inbox_drafts_thread ON inbox_drafts (team_id, thread_id) WHERE thread_id IS NOT NULL;

CREATE TABLE inbox_draft_attachments (
    team_id      uuid     NOT NULL,
    id           uuid     NOT NULL,
    draft_id     uuid     NOT NULL,
    position     smallint NOT NULL,
    filename     text     NOT NULL,
    content_type text     NOT NULL,
    size         bigint   NOT NULL,
    data         bytea,
    blob         text,
    PRIMARY KEY (team_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE UNIQUE INDEX inbox_draft_attachments_place ON inbox_draft_attachments (team_id, draft_id, position);

-- The inboxes that have a message; an email that one of them still has is not too old.
ALTER TABLE received_emails ADD COLUMN inboxes uuid[];
ALTER TABLE emails ADD COLUMN inbox_id uuid;
