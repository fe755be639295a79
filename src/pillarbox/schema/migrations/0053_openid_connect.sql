-- compatible since: 16
-- Logins by OpenID Connect. The previous release asks for no table and no column of these names.
ALTER TABLE people ADD COLUMN may_use_password boolean NOT NULL DEFAULT false;
CREATE TABLE person_openid_links (
    issuer       text        NOT NULL,
    subject      text        NOT NULL,
    person_id    uuid        NOT NULL,
    email        text        NOT NULL,
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz NOT NULL,
    PRIMARY KEY (issuer, subject),
    CONSTRAINT person_openid_links_person_key UNIQUE (person_id, issuer)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE TABLE person_openid_states (
    hash       bytea       NOT NULL PRIMARY KEY,
    expires_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX person_openid_states_expires ON person_openid_states (expires_at);
