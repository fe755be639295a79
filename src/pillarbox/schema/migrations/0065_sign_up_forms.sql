-- compatible since: 16
-- Sign-up forms and their sign-ups (docs/decisions/0186). The previous release knows neither.
CREATE TABLE forms (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    is_open    boolean     NOT NULL,
    settings   json        NOT NULL,
    shown      bigint      NOT NULL DEFAULT 0,
    sent       bigint      NOT NULL DEFAULT 0,
    confirmed  bigint      NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    deleted_at timestamptz,
    PRIMARY KEY (team_id, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- An address that somebody gave to a form, and the consent of its owner once there is one. `digest` is the SHA-256 of the
-- secret in the link, `content` has the values and topics, `network` is what counts as one sender.
CREATE TABLE form_sign_ups (
    team_id          uuid        NOT NULL,
    id               uuid        NOT NULL,
    form_id          uuid        NOT NULL,
    address          text        NOT NULL,
    email            text        NOT NULL,
    digest           bytea       NOT NULL,
    content          json        NOT NULL,
    consent_text     text        NOT NULL,
    client           text        NOT NULL,
    network          text        NOT NULL,
    requested_at     timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    confirmed_at     timestamptz,
    confirmed_client text,
    contact_id       uuid,
    PRIMARY KEY (team_id, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX form_sign_ups_form ON form_sign_ups (team_id, form_id, id);
CREATE INDEX form_sign_ups_address ON form_sign_ups (team_id, address, requested_at);
CREATE INDEX form_sign_ups_waiting ON form_sign_ups (expires_at) WHERE confirmed_at IS NULL;
