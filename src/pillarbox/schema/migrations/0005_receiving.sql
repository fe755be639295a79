-- Received mail: what lists show of it, the message itself, where its parts lie, and what came lately.

-- What lists show of a received email; one row for each team of a transaction. `recipients` are the addresses of
-- the envelope that are this team's, in the order of the session; `spf`, `dkim` and `dmarc` are results by their
-- names, `spam_reason` says why a mail is spam. `complete` is false where a limit left something undivided.
CREATE TABLE received_emails (
    team_id       uuid        NOT NULL,
    id            uuid        NOT NULL,
    created_at    timestamptz NOT NULL,
    sender        text        NOT NULL,
    to_list       json        NOT NULL,
    cc_list       json,
    bcc_list      json,
    reply_to_list json,
    subject       text        NOT NULL,
    message_id    text        NOT NULL,
    received_for  json        NOT NULL,
    attachments   smallint    NOT NULL,
    recipients    json        NOT NULL,
    mail_from     text        NOT NULL,
    client        text        NOT NULL,
    spf           text        NOT NULL,
    dkim          text        NOT NULL,
    dmarc         text        NOT NULL,
    spam_reason   text,
    size          bigint      NOT NULL,
    complete      boolean     NOT NULL,
    PRIMARY KEY (team_id, id)
) WITH (toast_tuple_target = 8160);

-- The message as it came, in `data` or in the blob store under `blob`, without our own trace fields, which are in
-- `trace`. What is read from it again and again is in `parsed` where the message itself is a blob.
CREATE TABLE received_sources (
    team_id uuid   NOT NULL,
    id      uuid   NOT NULL,
    trace   bytea  NOT NULL,
    size    bigint NOT NULL,
    data    bytea,
    blob    text,
    parsed  json,
    PRIMARY KEY (team_id, id),
    CHECK ((data IS NULL) <> (blob IS NULL)),
    CHECK ((parsed IS NULL) = (blob IS NULL))
) WITH (toast_tuple_target = 8160);
ALTER TABLE received_sources ALTER COLUMN data SET STORAGE EXTERNAL;

-- Where the parts of a received message lie in it: the octets from `starts` up to `ends`, encoded by `encoding`.
-- `inline` says that the message shows the part.
CREATE TABLE received_attachments (
    team_id      uuid     NOT NULL,
    id           uuid     NOT NULL,
    email_id     uuid     NOT NULL,
    position     smallint NOT NULL,
    filename     text,
    content_type text     NOT NULL,
    disposition  text,
    content_id   text,
    inline       boolean  NOT NULL,
    size         bigint   NOT NULL,
    encoding     text     NOT NULL,
    starts       bigint   NOT NULL,
    ends         bigint   NOT NULL,
    PRIMARY KEY (team_id, id)
);
CREATE INDEX received_attachments_email ON received_attachments (team_id, email_id, position);

-- What was received in the last 24 hours, so that a message whose 250 was lost is stored once. `fingerprint` is
-- SHA-256 of the message and of the recipients of its envelope.
CREATE TABLE received_seen (
    team_id     uuid        NOT NULL,
    fingerprint bytea       NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (team_id, fingerprint)
) WITH (autovacuum_vacuum_scale_factor = 0.1);
CREATE INDEX received_seen_at ON received_seen USING brin (at) WITH (pages_per_range = 16, autosummarize = on);
