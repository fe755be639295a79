-- compatible since: 16
-- People who log in, and programs that act for them.

-- Somebody who logs in, to one team or several. `password` is an argon2id hash; without one nobody logs in by
-- password. `totp` is sealed, and counts from `totp_confirmed_at` on; `totp_step` is the last step that was used.
CREATE TABLE people (
    id                  uuid        NOT NULL PRIMARY KEY,
    email               text        NOT NULL,
    email_key           text        NOT NULL UNIQUE,
    name                text,
    password            text,
    password_changed_at timestamptz,
    totp                bytea,
    totp_confirmed_at   timestamptz,
    totp_step           bigint      NOT NULL DEFAULT 0,
    created_at          timestamptz NOT NULL,
    last_login_at       timestamptz,
    disabled_at         timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- What a cookie means. Of somebody who has still to give a second factor it is `pending`. `confirmed_at` is when
-- the person last proved who it is; `ways` are how. `team_id` is the team that is looked at.
CREATE TABLE person_sessions (
    hash         bytea       NOT NULL PRIMARY KEY,
    id           uuid        NOT NULL,
    person_id    uuid        NOT NULL,
    stage        text        NOT NULL CHECK (stage IN ('pending', 'full')),
    ways         text[]      NOT NULL,
    team_id      uuid,
    created_at   timestamptz NOT NULL,
    used_at      timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    confirmed_at timestamptz NOT NULL,
    address      text,
    user_agent   text
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX person_sessions_person ON person_sessions (person_id, id);
CREATE INDEX person_sessions_ends ON person_sessions (ends_at);

CREATE TABLE person_passkeys (
    id           bytea       NOT NULL PRIMARY KEY,
    person_id    uuid        NOT NULL,
    public_key   bytea       NOT NULL,
    sign_count   bigint      NOT NULL,
    transports   text[]      NOT NULL,
    name         text        NOT NULL,
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX person_passkeys_person ON person_passkeys (person_id);

-- What a passkey has to sign, once. Whoever logs in by passkey alone is not known yet.
CREATE TABLE person_challenges (
    hash       bytea       NOT NULL PRIMARY KEY,
    person_id  uuid,
    purpose    text        NOT NULL CHECK (purpose IN ('register', 'login', 'confirm')),
    challenge  bytea       NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX person_challenges_expires ON person_challenges (expires_at);

CREATE TABLE person_recovery_codes (
    person_id uuid  NOT NULL,
    hash      bytea NOT NULL,
    used_at   timestamptz,
    PRIMARY KEY (person_id, hash)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Links that work once, by the hash of their token.
CREATE TABLE person_links (
    hash          bytea       NOT NULL PRIMARY KEY,
    kind          text        NOT NULL CHECK (kind IN ('set_up', 'invitation', 'password')),
    person_id     uuid,
    team_id       uuid,
    invitation_id uuid,
    created_at    timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    used_at       timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX person_links_person ON person_links (person_id);
CREATE INDEX person_links_invitation ON person_links (team_id, invitation_id);
CREATE INDEX person_links_expires ON person_links (expires_at);

-- A member without a person is an address alone, of before there were people: whoever is set up with that
-- address takes its place.
ALTER TABLE team_members
    ADD COLUMN person_id uuid,
    ADD COLUMN role text NOT NULL DEFAULT 'owner' CHECK (role IN ('owner', 'admin', 'member', 'viewer'));
CREATE UNIQUE INDEX team_members_team_person_key ON team_members (team_id, person_id);
CREATE INDEX team_members_person ON team_members (person_id);

CREATE TABLE team_invitations (
    team_id     uuid        NOT NULL,
    id          uuid        NOT NULL,
    email       text        NOT NULL,
    role        text        NOT NULL CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
    invited_by  uuid,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    accepted_at timestamptz,
    PRIMARY KEY (team_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Who made the key; null: the operator, or another key.
ALTER TABLE api_keys ADD COLUMN created_by uuid;

-- Who did what. `actor` is what the person, key or program was called then. Entries of no team have the team 0.
CREATE TABLE audit_entries (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    at         timestamptz NOT NULL,
    what       text        NOT NULL,
    person_id  uuid,
    key_id     uuid,
    grant_id   uuid,
    actor      text,
    target     text,
    address    text,
    user_agent text,
    details    json,
    PRIMARY KEY (team_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX audit_entries_at ON audit_entries (at);

-- What was written stays as it is; only what is old may be removed.
CREATE FUNCTION audit_entry_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at < statement_timestamp() - interval '30 days' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'audit entries are neither changed nor removed' USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER audit_entry_stays BEFORE UPDATE OR DELETE ON audit_entries
    FOR EACH ROW EXECUTE FUNCTION audit_entry_stays();

-- OAuth (oauth.md) -----------------------------------------------------------------------------------

-- Keys that sign access tokens; `private` is sealed. One signs from `active_at` until the next one does.
CREATE TABLE oauth_keys (
    id         uuid        NOT NULL PRIMARY KEY,
    kid        text        NOT NULL UNIQUE,
    public     json        NOT NULL,
    private    bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    active_at  timestamptz NOT NULL,
    retired_at timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

CREATE TABLE oauth_clients (
    id                         uuid        NOT NULL PRIMARY KEY,
    name                       text        NOT NULL,
    redirect_uris              text[]      NOT NULL,
    grant_types                text[]      NOT NULL,
    token_endpoint_auth_method text        NOT NULL
        CHECK (token_endpoint_auth_method IN ('none', 'client_secret_basic', 'client_secret_post')),
    scopes                     text[]      NOT NULL,
    client_uri                 text,
    logo_uri                   text,
    secret_hash                bytea,
    is_built_in                boolean     NOT NULL DEFAULT false,
    is_verified                boolean     NOT NULL DEFAULT false,
    disabled_at                timestamptz,
    created_at                 timestamptz NOT NULL,
    granted_at                 timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX oauth_clients_unused ON oauth_clients (created_at) WHERE granted_at IS NULL;

-- The official command-line tool logs in without registering.
INSERT INTO oauth_clients (id, name, redirect_uris, grant_types, token_endpoint_auth_method, scopes, is_built_in,
                           created_at)
VALUES ('7136aa0b-625c-4c9c-8820-e9784c8eb141', 'Command line', '{http://127.0.0.1/oauth/callback}',
        '{authorization_code,refresh_token}', 'none', '{full_access,emails:send}', true, now());

-- An authorization that somebody has still to decide about, by the hash of its id, in one browser.
CREATE TABLE oauth_requests (
    hash         bytea       NOT NULL PRIMARY KEY,
    browser_hash bytea       NOT NULL,
    client_id    text        NOT NULL,
    client       json        NOT NULL,
    redirect_uri text        NOT NULL,
    scopes       text[]      NOT NULL,
    state        text,
    challenge    text        NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    decided_at   timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX oauth_requests_expires ON oauth_requests (expires_at);

-- Documents that describe clients, and logos, by the hash of their URL.
CREATE TABLE oauth_documents (
    hash       bytea       NOT NULL PRIMARY KEY,
    url        text        NOT NULL,
    document   json        NOT NULL,
    fetched_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX oauth_documents_expires ON oauth_documents (expires_at);

CREATE TABLE oauth_logos (
    hash       bytea       NOT NULL PRIMARY KEY,
    url        text        NOT NULL,
    media      text        NOT NULL,
    octets     bytea       NOT NULL,
    fetched_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX oauth_logos_expires ON oauth_logos (expires_at);

-- What a person has allowed a program to do in a team. `client` is what was known of the program then.
CREATE TABLE oauth_grants (
    team_id        uuid        NOT NULL,
    id             uuid        NOT NULL,
    client_id      text        NOT NULL,
    client         json        NOT NULL,
    person_id      uuid        NOT NULL,
    scopes         text[]      NOT NULL,
    created_at     timestamptz NOT NULL,
    last_used_at   timestamptz,
    revoked_at     timestamptz,
    revoked_reason text        CHECK (revoked_reason IN
        ('revoked_from_api', 'revoked_from_dashboard', 'revoked_by_client', 'refresh_token_reuse', 'code_reuse',
         'client_disabled', 'user_removed')),
    PRIMARY KEY (team_id, id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX oauth_grants_person ON oauth_grants (team_id, person_id) WHERE revoked_at IS NULL;
CREATE INDEX oauth_grants_client ON oauth_grants (client_id) WHERE revoked_at IS NULL;

CREATE TABLE oauth_codes (
    hash         bytea       NOT NULL PRIMARY KEY,
    team_id      uuid        NOT NULL,
    grant_id     uuid        NOT NULL,
    client_id    text        NOT NULL,
    redirect_uri text        NOT NULL,
    challenge    text        NOT NULL,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    failures     smallint    NOT NULL DEFAULT 0,
    used_at      timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX oauth_codes_expires ON oauth_codes (expires_at);

CREATE TABLE oauth_refresh_tokens (
    hash       bytea       NOT NULL PRIMARY KEY,
    team_id    uuid        NOT NULL,
    grant_id   uuid        NOT NULL,
    client_id  text        NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    rotated_at timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX oauth_refresh_tokens_grant ON oauth_refresh_tokens (team_id, grant_id);
CREATE INDEX oauth_refresh_tokens_expires ON oauth_refresh_tokens (expires_at);
