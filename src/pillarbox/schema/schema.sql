-- The whole schema. `migrations/` leads to exactly this; a test compares the two.
--
-- Tenant tables: PRIMARY KEY starts with team_id, and so does every unique and foreign key, so a row
-- cannot point into another team and the schema can be distributed by team_id.
-- Hot tables carry no foreign keys to other tables (architecture 2.6).
-- Columns of type `json` hold the text that the wire shows and are never searched.
-- Every table has autovacuum settings of its own: docs/decisions/0050 says which kind of table has which, and why.

-- Fails the statement that calls it, which undoes all that it has done (docs/decisions/0026).
CREATE FUNCTION fail_statement(reason text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', reason USING ERRCODE = 'PB001';
END
$$;

-- Who exists -----------------------------------------------------------------------------------------

-- A limit or a retention that is null is the installation's; a quota that is null is none.
CREATE TABLE teams (
    id          uuid        NOT NULL PRIMARY KEY,
    number      integer     GENERATED ALWAYS AS IDENTITY UNIQUE,
    name        text        NOT NULL,
    email       text        NOT NULL,
    status      text        NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'blocked', 'disabled')),
    rate_limit  integer     CHECK (rate_limit >= 0),
    created_at  timestamptz NOT NULL,
    daily_quota            bigint  CHECK (daily_quota >= 0),
    monthly_quota          bigint  CHECK (monthly_quota >= 0),
    email_retention_days   integer CHECK (email_retention_days >= 0),
    log_retention_days     integer CHECK (log_retention_days >= 0),
    metrics_retention_days integer CHECK (metrics_retention_days >= 0),
    most_domains           integer CHECK (most_domains >= 0),
    most_webhooks          integer CHECK (most_webhooks >= 0),
    most_api_keys          integer CHECK (most_api_keys >= 0),
    unsubscribe_page       jsonb,
    mail_theme             jsonb
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- A member without a person is an address alone, of before there were people: whoever is set up with that
-- address takes its place.
CREATE TABLE team_members (
    team_id     uuid        NOT NULL,
    id          uuid        NOT NULL,
    email       text        NOT NULL,
    created_at  timestamptz NOT NULL,
    person_id   uuid,
    role        text        NOT NULL DEFAULT 'owner' CHECK (role IN ('owner', 'admin', 'member', 'viewer')),
    are_first_steps_hidden boolean NOT NULL DEFAULT false,
    PRIMARY KEY (team_id, id),
    CONSTRAINT team_members_team_email_key UNIQUE (team_id, email)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE UNIQUE INDEX team_members_team_person_key ON team_members (team_id, person_id);
CREATE INDEX team_members_person ON team_members (person_id);

-- `created_by` is the person who made the key and for whom it acts; null: the key is the team's own. `grant_id` is the grant of
-- the program that made it; it ends with it. `is_kept`: an admin has made it the team's.
CREATE TABLE api_keys (
    team_id      uuid        NOT NULL,
    id           uuid        NOT NULL,
    name         text        NOT NULL,
    permission   text        NOT NULL CHECK (permission IN ('full_access', 'sending_access', 'inbox_access')),
    domain_id    uuid,
    status       text        NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended', 'inactive')),
    display      text        NOT NULL,
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    created_by   uuid,
    grant_id     uuid,
    is_kept      boolean     NOT NULL DEFAULT false,
    inbox_id     uuid,
    rights       text[],
    PRIMARY KEY (team_id, id),
    CONSTRAINT api_keys_inbox_check CHECK (
        CASE WHEN permission = 'inbox_access'
             THEN inbox_id IS NOT NULL AND cardinality(rights) > 0 AND rights <@ '{read,label,draft,send}'
             ELSE inbox_id IS NULL AND rights IS NULL END)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Which team an API key means. Global: a request arrives without a team.
CREATE TABLE directory_keys (
    hash    bytea NOT NULL PRIMARY KEY,
    team_id uuid  NOT NULL,
    key_id  uuid  NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX directory_keys_owner ON directory_keys (team_id, key_id);

-- People --------------------------------------------------------------------------------------------

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
    disabled_at         timestamptz,
    is_operator         boolean     NOT NULL DEFAULT false,
    may_use_password    boolean     NOT NULL DEFAULT false
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

-- Who a subject of an OpenID Connect provider is. `email` is the address that the provider had verified when the two were
-- joined; a login asks for issuer and subject alone.
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

-- Values of `state` that a provider's answer has brought, by their hash: none counts twice.
CREATE TABLE person_openid_states (
    hash       bytea       NOT NULL PRIMARY KEY,
    expires_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX person_openid_states_expires ON person_openid_states (expires_at);

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

-- A change of the address that somebody logs in with, which waits for the link that was mailed to the new one; `hash`
-- is of its token. A person has one at most.
CREATE TABLE person_address_changes (
    person_id  uuid        NOT NULL PRIMARY KEY,
    hash       bytea       NOT NULL,
    email      text        NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX person_address_changes_expires ON person_address_changes (expires_at);

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

-- What was written stays as it is; only what is old may be removed, and texts may give way to the address that
-- stands for the one of an erased person.
CREATE FUNCTION audit_entry_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at < statement_timestamp() - interval '30 days' THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE'
       AND (NEW.team_id, NEW.id, NEW.at, NEW.what, NEW.person_id, NEW.key_id, NEW.grant_id, NEW.actor, NEW.address,
            NEW.user_agent)
           IS NOT DISTINCT FROM
           (OLD.team_id, OLD.id, OLD.at, OLD.what, OLD.person_id, OLD.key_id, OLD.grant_id, OLD.actor, OLD.address,
            OLD.user_agent)
       AND (NEW.target IS NOT DISTINCT FROM OLD.target OR NEW.target LIKE '%erased@erased.invalid%')
       AND (NEW.details::text IS NOT DISTINCT FROM OLD.details::text
            OR NEW.details::text LIKE '%erased@erased.invalid%') THEN
        RETURN NEW;
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
    inbox_id       uuid,
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

-- Sending domains ------------------------------------------------------------------------------------

-- `records` holds the states of records, `findings` what DNS showed of each: what was expected, what was found,
-- where and when. `verifying_since` is when a check was last requested. The three flags of ability lag
-- behind the states on purpose: a new check of a working domain interrupts nothing.
CREATE TABLE domains (
    team_id            uuid        NOT NULL,
    id                 uuid        NOT NULL,
    name               text        NOT NULL,
    region             text        NOT NULL,
    created_at         timestamptz NOT NULL,
    return_path        text        NOT NULL,
    tracking_subdomain text,
    open_tracking      boolean     NOT NULL,
    click_tracking     boolean     NOT NULL,
    tls                text        NOT NULL CHECK (tls IN ('opportunistic', 'enforced')),
    sending            boolean     NOT NULL,
    receiving          boolean     NOT NULL,
    sending_ok         boolean     NOT NULL DEFAULT false,
    receiving_ok       boolean     NOT NULL DEFAULT false,
    trusted            boolean     NOT NULL DEFAULT false,
    records            jsonb       NOT NULL DEFAULT '{}',
    tracking_ok        boolean     NOT NULL DEFAULT false,
    verifying_since    timestamptz,
    checked_at         timestamptz,
    findings           json        NOT NULL DEFAULT '{}',
    claim_id           uuid,
    PRIMARY KEY (team_id, id),
    CONSTRAINT domains_team_name_key UNIQUE (team_id, name),
    CHECK (sending OR receiving)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Private keys are sealed by the key ring; the row's own id is part of the seal.
-- One key signs (`active`); one may wait until its record has been seen; a replaced one stays listed until
-- `retires_at`.
CREATE TABLE dkim_keys (
    team_id     uuid        NOT NULL,
    id          uuid        NOT NULL,
    domain_id   uuid        NOT NULL,
    selector    text        NOT NULL,
    algorithm   text        NOT NULL CHECK (algorithm IN ('rsa', 'ed25519')),
    public_key  text        NOT NULL,
    private_key bytea       NOT NULL,
    active      boolean     NOT NULL,
    created_at  timestamptz NOT NULL,
    retires_at  timestamptz,
    PRIMARY KEY (team_id, id),
    CONSTRAINT dkim_keys_team_domain_selector_key UNIQUE (team_id, domain_id, selector),
    CHECK (NOT active OR retires_at IS NULL),
    FOREIGN KEY (team_id, domain_id) REFERENCES domains (team_id, id) ON DELETE CASCADE
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE UNIQUE INDEX dkim_keys_active ON dkim_keys (team_id, domain_id, algorithm) WHERE active;
CREATE UNIQUE INDEX dkim_keys_waiting ON dkim_keys (team_id, domain_id, algorithm)
 WHERE NOT active AND retires_at IS NULL;

-- Which teams hold a domain name, and which one owns it. Global.
CREATE TABLE directory_domains (
    name      text    NOT NULL,
    team_id   uuid    NOT NULL,
    domain_id uuid    NOT NULL,
    owned     boolean NOT NULL DEFAULT false,
    owned_at  timestamptz,
    PRIMARY KEY (name, team_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE UNIQUE INDEX directory_domains_owner ON directory_domains (name) WHERE owned;

-- Which inbox an address means. Of a live inbox alone: deleting one frees its addresses.
CREATE TABLE directory_inboxes (
    address      text    NOT NULL,
    team_id      uuid    NOT NULL,
    inbox_id     uuid    NOT NULL,
    is_forwarded boolean NOT NULL,
    PRIMARY KEY (address)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX directory_inboxes_inbox ON directory_inboxes (team_id, inbox_id);

-- Claims of names that another team has verified. An open one has a placeholder, whose `domains.claim_id`
-- names it; `domain_id` outlives that, and is null once the placeholder was deleted. `checking_since` is when
-- the last check was asked for.
CREATE TABLE domain_claims (
    team_id            uuid        NOT NULL,
    id                 uuid        NOT NULL,
    name               text        NOT NULL,
    domain_id          uuid,
    token              text        NOT NULL,
    region             text        NOT NULL,
    return_path        text        NOT NULL,
    tracking_subdomain text,
    open_tracking      boolean     NOT NULL,
    click_tracking     boolean     NOT NULL,
    status             text        NOT NULL CHECK (status IN ('pending', 'verified', 'blocked', 'completed',
                                                              'expired', 'superseded', 'canceled', 'failed')),
    blocked_reason     text,
    failure_reason     text,
    created_at         timestamptz NOT NULL,
    expires_at         timestamptz NOT NULL,
    checking_since     timestamptz,
    blocked_since      timestamptz,
    PRIMARY KEY (team_id, id),
    CHECK ((blocked_reason IS NOT NULL) = (status = 'blocked')),
    CHECK ((failure_reason IS NOT NULL) = (status = 'failed'))
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX domain_claims_domain ON domain_claims (team_id, domain_id, id);
CREATE UNIQUE INDEX domain_claims_open ON domain_claims (team_id, name)
    WHERE status IN ('pending', 'verified', 'blocked');

-- Addresses that the team must not write to; the first cause stays. `address` is the form that is compared,
-- `email` the one that was given, in lower case, where it differs (a domain that is not ASCII).
CREATE TABLE suppressions (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    address    text        NOT NULL,
    origin     text        NOT NULL CHECK (origin IN ('bounce', 'complaint', 'manual')),
    source_id  uuid,
    created_at timestamptz NOT NULL,
    email      text,
    PRIMARY KEY (team_id, id),
    CONSTRAINT suppressions_team_address_key UNIQUE (team_id, address)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX suppressions_origin ON suppressions (team_id, origin, id);

-- People who were erased, by a hash of their address, made with a key that is sealed: mail to it is skipped. `address`,
-- `given` and `contact_id` are there until all is erased; `part` and `place` say how far that is.
CREATE TABLE erasures (
    team_id      uuid        NOT NULL,
    id           uuid        NOT NULL,
    hash         bytea       NOT NULL,
    address      text,
    given        text,
    contact_id   uuid,
    part         text        NOT NULL DEFAULT '',
    place        text        NOT NULL DEFAULT '',
    rows         bigint      NOT NULL DEFAULT 0,
    waiting      bigint      NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL,
    completed_at timestamptz,
    PRIMARY KEY (team_id, id),
    CONSTRAINT erasures_team_hash_key UNIQUE (team_id, hash),
    CHECK ((address IS NULL) = (completed_at IS NOT NULL)),
    CHECK (address IS NOT NULL OR (given IS NULL AND contact_id IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Audience -------------------------------------------------------------------------------------------

-- `address` and `email` as in `suppressions`. `properties` has the values by the number of their property; what
-- has the number of a deleted property is no value any more. `import_id` is the import that made the contact; while
-- `imported_at` is `updated_at`, nobody else has changed it.
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
    import_id    uuid,
    imported_at  timestamptz,
    PRIMARY KEY (team_id, id),
    CONSTRAINT contacts_team_address_key UNIQUE (team_id, address)
) WITH (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX contacts_updated_at ON contacts USING brin (updated_at)
  WITH (pages_per_range = 16, autosummarize = on);

-- A number stands for one property until its last value is gone: a deleted row stays until then.
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

-- A list of contacts, or with `conditions` those contacts that fit them. A deleted segment is gone at once, its members
-- are removed in the background.
CREATE TABLE segments (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    created_at timestamptz NOT NULL,
    conditions json,
    PRIMARY KEY (team_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- No foreign keys (architecture 2.6): who adds a row holds a lock on its contact and its segment.
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

-- A deleted topic stays while mail that was accepted for it may still go out: choices hold for that mail.
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
CREATE INDEX topics_live ON topics (team_id, id) WHERE deleted_at IS NULL;
CREATE INDEX topics_deleted ON topics (team_id, deleted_at) WHERE deleted_at IS NOT NULL;

-- What contacts have chosen; without a row the default of the topic holds.
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

-- An act on many contacts, which a job does: those with `contact_ids`, or those that fit `conditions` and `search`. It has
-- gone through them as far as `position`.
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

-- The terms by which contacts are found: three characters in a row of the address and names each, as a number that has the
-- team in it. A background job keeps them, from the changes of contacts.
CREATE TABLE contact_terms (
    team_id    uuid      NOT NULL,
    contact_id uuid      NOT NULL,
    terms      integer[] NOT NULL,
    PRIMARY KEY (team_id, contact_id)
) WITH (
    fillfactor = 90,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX contact_terms_terms ON contact_terms USING gin (terms);

CREATE TABLE contact_terms_progress (
    id         smallint    NOT NULL PRIMARY KEY CHECK (id = 1),
    kept_until timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- `columns` says which column of the file becomes what. `checkpoint` is where the next batch begins; it changes
-- with the counts and the contacts in one transaction. `blob` is null once the file is removed. An `uploaded` file
-- waits until somebody has mapped its columns, `preview` is what they see of it. `undo_after` is the last contact that
-- was looked at while an import is undone.
CREATE TABLE contact_imports (
    team_id      uuid        NOT NULL,
    id           uuid        NOT NULL,
    status       text        NOT NULL CONSTRAINT contact_imports_status_check
                 CHECK (status IN ('uploaded', 'queued', 'in_progress', 'completed', 'failed')),
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
    file_name         text,
    created_by        text,
    consent_note      text,
    preview           json,
    undo_requested_at timestamptz,
    undone_at         timestamptz,
    undo_after        uuid,
    undo_removed      bigint NOT NULL DEFAULT 0,
    undo_kept         bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (team_id, id),
    CHECK ((completed_at IS NOT NULL) = (status IN ('completed', 'failed')))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- The first thousand rows of an import that failed, and what ended it.
CREATE TABLE contact_import_errors (
    team_id    uuid   NOT NULL,
    import_id  uuid   NOT NULL,
    id         uuid   NOT NULL,
    row_number bigint NOT NULL,
    email      text,
    reason     text   NOT NULL,
    PRIMARY KEY (team_id, import_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

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

-- A template has at most one published version and at most one newer draft; some that were published before are kept.
-- `source` is the document that the html was made of, with the digest of that html.
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
    source        json,
    published_at  timestamptz,
    PRIMARY KEY (team_id, template_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Pictures that teams put into their mail; the name of the blob is the address of the picture.
CREATE TABLE images (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    alt        text        NOT NULL,
    media      text        NOT NULL,
    width      integer     NOT NULL,
    height     integer     NOT NULL,
    size       bigint      NOT NULL,
    blob       text        NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (team_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Links of mail that was not sent yet, and what their servers answered. `id` follows from the URL, so that a team asks
-- for one once.
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

-- `resolved_at`: when the recipients were written; `paused_for` shows as `queued` on the wire; `failed_for` says why
-- it is `failed`. `content_id` is what its copies share, frozen when it was queued.
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
    source         json,
    PRIMARY KEY (team_id, id),
    CHECK (resolved_at IS NULL OR (queued_at IS NOT NULL AND recipients IS NOT NULL)),
    CHECK ((paused_at IS NULL) = (paused_for IS NULL))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX broadcasts_queued ON broadcasts (team_id, id) WHERE status = 'queued';

-- One row for each contact that a broadcast goes to: the guarantee of one copy. It waits while email and reason are
-- null. Who is in the canary has wave 1, who else is in an A/B test 2; `variant` is which content it gets.
CREATE TABLE broadcast_recipients (
    team_id      uuid NOT NULL,
    broadcast_id uuid NOT NULL,
    contact_id   uuid NOT NULL,
    email_id     uuid,
    skipped_for  text,
    wave         smallint,
    variant      smallint,
    PRIMARY KEY (team_id, broadcast_id, contact_id),
    CHECK (email_id IS NULL OR skipped_for IS NULL)
) WITH (
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX broadcast_recipients_waves ON broadcast_recipients (team_id, broadcast_id, wave, contact_id)
    WHERE wave IS NOT NULL;

-- How slowly a broadcast is sent, and its A/B test, as JSON; and how far that is. `stage` is null before the start.
CREATE TABLE broadcast_plans (
    team_id      uuid     NOT NULL,
    broadcast_id uuid     NOT NULL,
    plan         json     NOT NULL,
    stage        text     CHECK (stage IN ('canary', 'checking', 'testing', 'deciding', 'rest')),
    stage_until  timestamptz,
    next_at      timestamptz,
    winner       smallint,
    PRIMARY KEY (team_id, broadcast_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- The variants of an A/B test. What is null is the broadcast's; `content_id` is what their copies share.
CREATE TABLE broadcast_variants (
    team_id      uuid     NOT NULL,
    broadcast_id uuid     NOT NULL,
    number       smallint NOT NULL CHECK (number BETWEEN 1 AND 4),
    subject      text,
    preview_text text,
    html         text,
    text         text,
    content_id   uuid,
    PRIMARY KEY (team_id, broadcast_id, number)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- `version` is the newest of its graphs. `enabled_at` is since when it starts runs. `epoch` grows when its runs are
-- to end: one that is still running with an older epoch is cancelled. A deleted one stays until its runs are gone.
CREATE TABLE automations (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    status     text        NOT NULL CHECK (status IN ('enabled', 'disabled')),
    version    integer     NOT NULL CHECK (version > 0),
    epoch      integer     NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    enabled_at timestamptz,
    deleted_at timestamptz,
    PRIMARY KEY (team_id, id),
    CHECK ((status = 'enabled') = (enabled_at IS NOT NULL)),
    CHECK (deleted_at IS NULL OR status = 'disabled')
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- The graphs in normal form, as they are shown. A graph never changes: another one is another version.
CREATE TABLE automation_versions (
    team_id       uuid        NOT NULL,
    automation_id uuid        NOT NULL,
    version       integer     NOT NULL,
    steps         json        NOT NULL,
    connections   json        NOT NULL,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (team_id, automation_id, version)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- What starts runs: a row for each trigger of an automation, while it is enabled. Who starts a run holds a lock
-- on its row (FOR KEY SHARE), so nothing starts once the row is gone.
CREATE TABLE automation_triggers (
    team_id       uuid        NOT NULL,
    event_name    text        NOT NULL,
    automation_id uuid        NOT NULL,
    trigger_key   text        NOT NULL,
    version       integer     NOT NULL,
    epoch         integer     NOT NULL,
    enabled_at    timestamptz NOT NULL,
    PRIMARY KEY (team_id, event_name, automation_id, trigger_key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX automation_triggers_automation ON automation_triggers (team_id, automation_id);

-- A walk of one contact through a graph. `payload` is that of the event that started it, `waited` has the payload of
-- the last event of each name that it waited for. `contact_deleted_at` is when a step of the run deleted its contact.
CREATE TABLE automation_runs (
    team_id            uuid        NOT NULL,
    id                 uuid        NOT NULL,
    automation_id      uuid        NOT NULL,
    version            integer     NOT NULL,
    epoch              integer     NOT NULL,
    event_id           uuid        NOT NULL,
    event_name         text        NOT NULL,
    trigger_key        text        NOT NULL,
    contact_id         uuid        NOT NULL,
    status             text        NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'cancelled')),
    payload            json        NOT NULL,
    waited             json,
    contact_deleted_at timestamptz,
    created_at         timestamptz NOT NULL,
    started_at         timestamptz,
    completed_at       timestamptz,
    PRIMARY KEY (team_id, id),
    CONSTRAINT automation_runs_once UNIQUE (team_id, event_id, automation_id, trigger_key),
    CHECK ((status = 'running') = (completed_at IS NULL))
) WITH (
    fillfactor = 80,
    toast_tuple_target = 1024,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX automation_runs_list ON automation_runs (team_id, automation_id, status, id);
CREATE INDEX automation_runs_contact ON automation_runs (team_id, contact_id) WHERE status = 'running';
CREATE INDEX automation_runs_of_contact ON automation_runs (team_id, contact_id, id);
CREATE INDEX automation_runs_ended ON automation_runs (team_id, completed_at) WHERE completed_at IS NOT NULL;

-- The steps that a run has reached, by their places in the graph's list: each once. What has no row is pending, or
-- skipped where no way leads to it any more.
CREATE TABLE automation_steps (
    team_id      uuid        NOT NULL,
    run_id       uuid        NOT NULL,
    position     smallint    NOT NULL,
    status       text        NOT NULL CHECK (status IN ('running', 'waiting', 'completed', 'failed', 'skipped')),
    started_at   timestamptz,
    completed_at timestamptz,
    output       json,
    error        json,
    PRIMARY KEY (team_id, run_id, position)
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);

-- What runs have to do, a row for each step that is ready or waits: `waiting` says that the step has begun and
-- ends at `due_at`. One that waits for an event has its name in `event_name`; only events from `waits_from` on
-- count. Same lease rules as `deliveries`; `failing_since` is null while nothing went wrong. Of a contact the first by
-- `order_at` is carried out alone; it is null while a delay or wait goes on.
CREATE TABLE automation_work (
    team_id         uuid        NOT NULL,
    run_id          uuid        NOT NULL,
    position        smallint    NOT NULL,
    contact_id      uuid        NOT NULL,
    due_at          timestamptz NOT NULL,
    waiting         boolean     NOT NULL,
    event_name      text,
    waits_from      timestamptz,
    owner           uuid,
    leased_until    timestamptz,
    attempt         integer     NOT NULL DEFAULT 0,
    tries           integer     NOT NULL DEFAULT 0,
    failing_since   timestamptz,
    reason          text,
    restored_due_at timestamptz,
    order_at        timestamptz,
    begun           smallint    NOT NULL DEFAULT 0,
    PRIMARY KEY (team_id, run_id, position),
    CHECK ((owner IS NULL) = (leased_until IS NULL)),
    CHECK ((event_name IS NULL) = (waits_from IS NULL)),
    CHECK (event_name IS NULL OR waiting)
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_analyze_threshold = 5000
);
CREATE INDEX automation_work_due ON automation_work (team_id, due_at) WHERE owner IS NULL;
CREATE INDEX automation_work_order ON automation_work (team_id, contact_id, order_at, run_id, position)
 WHERE order_at IS NOT NULL;
CREATE INDEX automation_work_unordered ON automation_work (team_id, due_at)
 WHERE order_at IS NULL AND owner IS NULL;
CREATE INDEX automation_work_leased ON automation_work (leased_until) WHERE owner IS NOT NULL;
CREATE INDEX automation_work_waits ON automation_work (team_id, event_name, contact_id)
 WHERE event_name IS NOT NULL;

-- Whoever changes the threads or the counts of an inbox locks its row first. As far as the id `described_to` its
-- messages are in blocks, but for those in inbox_search_late.
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
    described_to      uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
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

-- What programs and people may do with an inbox. `sent_in_hour` and `sent_in_day` count the messages since `hour_at` and `day_at`.
CREATE TABLE inbox_policies (
    team_id            uuid        NOT NULL,
    inbox_id           uuid        NOT NULL,
    applies_to         text        NOT NULL CHECK (applies_to IN ('programs', 'everybody')),
    allowed_senders    text[]      NOT NULL,
    blocked_senders    text[]      NOT NULL,
    blocked_mail       text        NOT NULL CHECK (blocked_mail IN ('spam', 'refuse')),
    may_write_to       text        NOT NULL CHECK (may_write_to IN ('anybody', 'contacts', 'who_wrote_before', 'listed')),
    allowed_recipients text[]      NOT NULL,
    blocked_recipients text[]      NOT NULL,
    attachments        boolean     NOT NULL,
    messages_per_hour  integer     CHECK (messages_per_hour > 0),
    messages_per_day   integer     CHECK (messages_per_day > 0),
    reply_only         boolean     NOT NULL,
    footer             text,
    approval           text        NOT NULL CHECK (approval IN ('never', 'unknown_recipients', 'suspicious', 'always')),
    updated_at         timestamptz NOT NULL,
    hour_at            timestamptz,
    sent_in_hour       integer     NOT NULL DEFAULT 0,
    day_at             timestamptz,
    sent_in_day        integer     NOT NULL DEFAULT 0,
    PRIMARY KEY (team_id, inbox_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

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
-- as it is compared (inboxes.md 9.6), hashed. `marks` is how often it was marked, `marked_read` as what the last time.
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
    -- Folder, whether all is read, and whether something was sent: what lists are filtered by.
    list_class      smallint    NOT NULL GENERATED ALWAYS AS (
        CASE folder WHEN 'inbox' THEN 0 WHEN 'archive' THEN 4 WHEN 'spam' THEN 8 WHEN 'sent' THEN 12 ELSE 16 END
        + CASE WHEN unread = 0 THEN 2 ELSE 0 END
        + CASE WHEN messages > inbound THEN 1 ELSE 0 END) STORED,
    marks           integer     NOT NULL DEFAULT 0,
    marked_read     boolean     NOT NULL DEFAULT true,
    PRIMARY KEY (team_id, id),
    CHECK ((folder = 'trash') = (purge_at IS NOT NULL))
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX inbox_threads_list ON inbox_threads (team_id, inbox_id, list_class, received_at, id);
CREATE INDEX inbox_threads_subject ON inbox_threads (team_id, inbox_id, subject_key, received_at)
 WHERE subject_key IS NOT NULL;
CREATE INDEX inbox_threads_purge ON inbox_threads (team_id, purge_at) WHERE purge_at IS NOT NULL;

-- `list_class` and `received_at` are those of the thread.
CREATE TABLE inbox_thread_labels (
    team_id     uuid        NOT NULL,
    thread_id   uuid        NOT NULL,
    label_id    uuid        NOT NULL,
    list_class  smallint    NOT NULL,
    received_at timestamptz NOT NULL,
    PRIMARY KEY (team_id, thread_id, label_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX inbox_thread_labels_list
    ON inbox_thread_labels (team_id, label_id, list_class, received_at, thread_id);

-- What an inbox knows of a message; its bodies are those of the received or sent email of the same id.
-- `message_key` is the Message-ID without brackets, hashed, and `body_key` the octets behind the header.
-- `searched` is what words are looked for in. `marks` is how often the thread had been marked when the message came:
-- what came in is read as `is_read` says where that is still so, else as the thread was marked.
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
    marks         integer     NOT NULL DEFAULT 0,
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

-- What is known about a message that came in. `sender_key` and `name_key` are hashes of its address and of the name shown
-- with it, as they are compared; `domain` is the registrable one of its address.
CREATE TABLE message_trust (
    team_id    uuid        NOT NULL,
    email_id   uuid        NOT NULL,
    inbox_id   uuid        NOT NULL,
    level      text        NOT NULL CHECK (level IN ('trusted', 'known', 'unknown', 'suspicious')),
    reasons    jsonb       NOT NULL,
    sender_key uuid        NOT NULL,
    name_key   uuid,
    domain     text        NOT NULL,
    PRIMARY KEY (team_id, email_id, inbox_id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1
);
CREATE INDEX message_trust_sender ON message_trust (team_id, inbox_id, sender_key);
CREATE INDEX message_trust_name ON message_trust (team_id, inbox_id, name_key)
 WHERE name_key IS NOT NULL AND level IN ('trusted', 'known');
CREATE INDEX message_trust_domain ON message_trust (team_id, domain) WHERE level IN ('trusted', 'known');

-- Addresses that inboxes of the team have written to, as hashes.
CREATE TABLE inbox_correspondents (
    team_id     uuid NOT NULL,
    address_key uuid NOT NULL,
    PRIMARY KEY (team_id, address_key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

-- Messages in the order of their ids, one or more columns each: `messages` has the id of the message and of its
-- thread for each column, `begins` a bit for each column that is the first one of its message.
CREATE TABLE inbox_search_blocks (
    team_id   uuid     NOT NULL,
    inbox_id  uuid     NOT NULL,
    id        uuid     NOT NULL,
    version   smallint NOT NULL,
    columns   integer  NOT NULL,
    oldest_id uuid     NOT NULL,
    newest_id uuid     NOT NULL,
    begins    bytea    NOT NULL,
    messages  bytea    NOT NULL,
    PRIMARY KEY (team_id, inbox_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE inbox_search_blocks ALTER COLUMN begins SET STORAGE EXTERNAL;
ALTER TABLE inbox_search_blocks ALTER COLUMN messages SET STORAGE EXTERNAL;

-- The rows of the matrix of a block, 64 in each part: a bit for each column.
CREATE TABLE inbox_search_rows (
    team_id  uuid     NOT NULL,
    inbox_id uuid     NOT NULL,
    block_id uuid     NOT NULL,
    part     smallint NOT NULL,
    bits     bytea    NOT NULL,
    PRIMARY KEY (team_id, inbox_id, block_id, part)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE inbox_search_rows ALTER COLUMN bits SET STORAGE EXTERNAL;

-- Ids that messages of a thread name and that no message of the inbox has: who comes with one joins the thread.
CREATE TABLE inbox_awaited_messages (
    team_id     uuid        NOT NULL,
    inbox_id    uuid        NOT NULL,
    message_key bigint      NOT NULL,
    thread_id   uuid        NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (team_id, inbox_id, message_key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX inbox_awaited_messages_age ON inbox_awaited_messages (team_id, inbox_id, at);

-- Messages that no block has, although their ids are old enough: they were committed late.
CREATE TABLE inbox_search_late (
    team_id  uuid NOT NULL,
    inbox_id uuid NOT NULL,
    id       uuid NOT NULL,
    PRIMARY KEY (team_id, inbox_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Inboxes that may have enough messages for another block.
CREATE TABLE inbox_search_due (
    team_id  uuid NOT NULL,
    inbox_id uuid NOT NULL,
    PRIMARY KEY (team_id, inbox_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

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
CREATE INDEX inbox_drafts_inbox ON inbox_drafts (team_id, inbox_id, id);

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

-- Keys for links in sent mail, sealed by the key ring. The newest makes links; all of them are accepted for ever.
-- Global: a link arrives without a team.
CREATE TABLE link_keys (
    id         smallint    NOT NULL PRIMARY KEY CHECK (id > 0),
    sealed     bytea       NOT NULL,
    created_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Emails ---------------------------------------------------------------------------------------------

-- Slim, so that pages and status updates stay cheap. The three columns of the outcome (last_event,
-- last_event_at, sent_at) are written by `timeline` alone once the row exists. No index has them, and half of
-- each page is left free: the rows of a page are mostly settled in one commit, so each new version fits on the
-- page of the old one and no index is written (measured: 97 of 100; 90 with a third, 72 with the usual).
-- Copies of broadcasts leave sender, subject, to_list and message_id empty: `contents` and `recipients` have them.
-- `source` is `smtp` or `automation`; null for all other mail.
CREATE TABLE emails (
    team_id       uuid        NOT NULL,
    id            uuid        NOT NULL,
    created_at    timestamptz NOT NULL,
    content_id    uuid        NOT NULL,
    message_id    text        NOT NULL,
    sender        text        NOT NULL,
    to_list       json        NOT NULL,
    cc_list       json,
    bcc_list      json,
    reply_to_list json,
    subject       text        NOT NULL,
    tags          json,
    scheduled_at  timestamptz,
    topic_id      uuid,
    key_id        uuid,
    domain_id     uuid,
    domain_name   text        NOT NULL,
    broadcast_id  uuid,
    last_event    text        NOT NULL,
    last_event_at timestamptz NOT NULL,
    sent_at       timestamptz,
    template_id   uuid,
    inbox_id      uuid,
    source        text,
    PRIMARY KEY (team_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05, fillfactor = 50);

-- What mail of this installation to people says, sealed by the key ring: it has links by which somebody gets into an account. A
-- row goes when the email has no work any more; `contents` never has it.
CREATE TABLE sealed_mails (
    team_id    uuid  NOT NULL,
    email_id   uuid  NOT NULL,
    text       bytea NOT NULL,
    PRIMARY KEY (team_id, email_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Bodies once: shared by all emails of one broadcast, and for these `sender` to `preview_text` too, with placeholders. Eight kilobytes stay in line: compressed where the server was
-- built with LZ4, uncompressed otherwise (docs/decisions/0050).
CREATE TABLE contents (
    team_id     uuid        NOT NULL,
    id          uuid        NOT NULL,
    created_at  timestamptz NOT NULL,
    html        text,
    text        text,
    headers     json,
    attachments smallint    NOT NULL DEFAULT 0,
    sender      text,
    reply_to_list json,
    subject     text,
    preview_text text,
    link_places json,
    PRIMARY KEY (team_id, id)
) WITH (
    toast_tuple_target = 8160,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_cost_limit = 1000,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_limit = 1000
);
ALTER TABLE contents ALTER COLUMN html SET STORAGE EXTERNAL;
ALTER TABLE contents ALTER COLUMN text SET STORAGE EXTERNAL;

DO $$
BEGIN
    ALTER TABLE contents
        ALTER COLUMN html SET COMPRESSION lz4, ALTER COLUMN html SET STORAGE MAIN,
        ALTER COLUMN text SET COMPRESSION lz4, ALTER COLUMN text SET STORAGE MAIN,
        SET (toast_tuple_target = 1024);
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END
$$;

-- For finding emails: those of a team behind `after_id` and as far as `last_id`, some thousand, with a Bloom filter of
-- all they can be found by. A block begins where the one before it ends. `is_settled` once it was counted again;
-- `version` says which terms it knows.
CREATE TABLE search_blocks (
    team_id    uuid    NOT NULL,
    after_id   uuid    NOT NULL,
    last_id    uuid    NOT NULL,
    emails     integer NOT NULL,
    bits       bytea   NOT NULL,
    is_settled boolean NOT NULL DEFAULT false,
    version    smallint NOT NULL DEFAULT 1,
    PRIMARY KEY (team_id, after_id),
    CHECK (after_id < last_id)
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE search_blocks ALTER COLUMN bits SET STORAGE EXTERNAL;
CREATE INDEX search_blocks_unsettled ON search_blocks (last_id) WHERE NOT is_settled;
CREATE INDEX search_blocks_version ON search_blocks (version);

-- The bytes are in `data`, or in the blob store under `blob`, or not fetched yet (`url` alone).
CREATE TABLE attachments (
    team_id      uuid        NOT NULL,
    id           uuid        NOT NULL,
    content_id   uuid        NOT NULL,
    position     smallint    NOT NULL,
    filename     text        NOT NULL,
    content_type text        NOT NULL,
    cid          text,
    size         bigint,
    data         bytea,
    blob         text,
    url          text,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (team_id, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_cost_limit = 1000,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_limit = 1000
);
CREATE INDEX attachments_content ON attachments (team_id, content_id, position);
ALTER TABLE attachments ALTER COLUMN data SET STORAGE EXTERNAL;

-- One row per email and recipient. `address` is the form that is compared: domain as A-label and all
-- of it in lower case; `mailbox` is what the envelope carries. `grp` names the work item. The columns
-- of fate from `state` on are written by `timeline` alone once the row exists. `personal` has what a copy of a
-- broadcast has of its own: its subject and the values of its placeholders, as they were when it was made.
CREATE TABLE recipients (
    team_id         uuid        NOT NULL,
    email_id        uuid        NOT NULL,
    position        smallint    NOT NULL,
    role            text        NOT NULL CHECK (role IN ('to', 'cc', 'bcc')),
    address         text        NOT NULL,
    mailbox         text        NOT NULL,
    grp             smallint    NOT NULL,
    state           text        NOT NULL,
    sent_at         timestamptz,
    delayed_at      timestamptz,
    bounce_type     text,
    opened_at       timestamptz,
    clicked_at      timestamptz,
    complained_at   timestamptz,
    unsubscribed_at timestamptz,
    personal        json,
    PRIMARY KEY (team_id, email_id, position)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05, fillfactor = 60);

-- Emails with what copies of broadcasts leave empty in their own rows. All that shows emails reads this; what is not
-- asked for is not looked up.
CREATE VIEW complete_emails AS
    SELECT e.team_id, e.id, e.created_at, e.content_id,
           CASE WHEN e.broadcast_id IS NULL THEN e.message_id
                ELSE '<' || replace(e.id::text, '-', '') || '@' || e.domain_name || '>' END AS message_id,
           CASE WHEN e.broadcast_id IS NULL THEN e.sender
                ELSE coalesce((SELECT c.sender FROM contents c
                                WHERE c.team_id = e.team_id AND c.id = e.content_id), '') END AS sender,
           CASE WHEN e.broadcast_id IS NULL THEN e.to_list
                ELSE json_build_array((SELECT r.mailbox FROM recipients r
                                        WHERE r.team_id = e.team_id AND r.email_id = e.id AND r.position = 0))
                END AS to_list,
           e.cc_list, e.bcc_list,
           CASE WHEN e.broadcast_id IS NULL THEN e.reply_to_list
                ELSE (SELECT c.reply_to_list FROM contents c
                       WHERE c.team_id = e.team_id AND c.id = e.content_id) END AS reply_to_list,
           CASE WHEN e.broadcast_id IS NULL THEN e.subject
                ELSE coalesce((SELECT r.personal->>'subject' FROM recipients r
                                WHERE r.team_id = e.team_id AND r.email_id = e.id AND r.position = 0),
                              (SELECT c.subject FROM contents c
                                WHERE c.team_id = e.team_id AND c.id = e.content_id), '') END AS subject,
           e.tags, e.scheduled_at, e.topic_id, e.key_id, e.domain_id, e.domain_name, e.broadcast_id, e.last_event,
           e.last_event_at, e.sent_at, e.template_id, e.inbox_id,
           CASE WHEN e.broadcast_id IS NOT NULL THEN 'broadcast'
                WHEN e.inbox_id IS NOT NULL THEN 'inbox'
                ELSE coalesce(e.source, 'api') END AS source
      FROM emails e;

-- What happened to an email, in order; the only history there is.
CREATE TABLE timeline (
    team_id  uuid        NOT NULL,
    id       uuid        NOT NULL,
    email_id uuid        NOT NULL,
    at       timestamptz NOT NULL,
    kind     text        NOT NULL,
    position smallint,
    detail   json,
    PRIMARY KEY (team_id, email_id, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05
);
-- What happens to few emails, for finding them by state.
CREATE INDEX timeline_seldom ON timeline (team_id, kind, email_id)
 WHERE kind NOT IN ('queued', 'sent', 'delivered');
-- Read by time alone only at the odd edges of a range; nothing is written here for a single row.
CREATE INDEX timeline_at ON timeline USING brin (at) WITH (pages_per_range = 16, autosummarize = on);

-- One column per metric; appended by `timeline`, folded upwards in the background.
CREATE TABLE metric_increments (
    team_id             uuid        NOT NULL,
    id                  uuid        NOT NULL,
    start               timestamptz NOT NULL,
    domain_id           uuid,
    domain_name         text        NOT NULL,
    broadcast_id        uuid,
    received            integer     NOT NULL DEFAULT 0,
    sent                integer     NOT NULL DEFAULT 0,
    delivered           integer     NOT NULL DEFAULT 0,
    delivery_delayed    integer     NOT NULL DEFAULT 0,
    failed              integer     NOT NULL DEFAULT 0,
    suppressed          integer     NOT NULL DEFAULT 0,
    bounced_transient   integer     NOT NULL DEFAULT 0,
    bounced_permanent   integer     NOT NULL DEFAULT 0,
    bounced_undetermined integer    NOT NULL DEFAULT 0,
    opened              integer     NOT NULL DEFAULT 0,
    clicked             integer     NOT NULL DEFAULT 0,
    unique_opened       integer     NOT NULL DEFAULT 0,
    unique_clicked      integer     NOT NULL DEFAULT 0,
    complained          integer     NOT NULL DEFAULT 0,
    unsubscribed        integer     NOT NULL DEFAULT 0,
    PRIMARY KEY (team_id, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- The same, summed up: `level` 0 is ten seconds, 1 the quarter hour, 2 the hour, 3 the UTC day. The nil id stands
-- for no domain of ours and for no broadcast. Folding moves increments here, adding to each level at once.
CREATE TABLE rollups (
    team_id              uuid        NOT NULL,
    level                smallint    NOT NULL CHECK (level BETWEEN 0 AND 3),
    start                timestamptz NOT NULL,
    domain_id            uuid        NOT NULL,
    domain_name          text        NOT NULL,
    broadcast_id         uuid        NOT NULL,
    received             bigint      NOT NULL,
    sent                 bigint      NOT NULL,
    delivered            bigint      NOT NULL,
    delivery_delayed     bigint      NOT NULL,
    failed               bigint      NOT NULL,
    suppressed           bigint      NOT NULL,
    bounced_transient    bigint      NOT NULL,
    bounced_permanent    bigint      NOT NULL,
    bounced_undetermined bigint      NOT NULL,
    opened               bigint      NOT NULL,
    clicked              bigint      NOT NULL,
    unique_opened        bigint      NOT NULL,
    unique_clicked       bigint      NOT NULL,
    complained           bigint      NOT NULL,
    unsubscribed         bigint      NOT NULL,
    PRIMARY KEY (team_id, level, start, domain_id, domain_name, broadcast_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

-- The state of the rollups of a UTC day (`day` is its start): a new version with each change of a rollup of a
-- quarter hour or longer, whoever makes it. What was read of the day holds as long as its version stands. A day
-- without a row has no rollups.
CREATE TABLE rollup_versions (
    team_id uuid        NOT NULL,
    day     timestamptz NOT NULL,
    version uuid        NOT NULL DEFAULT gen_random_uuid(),
    PRIMARY KEY (team_id, day)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

CREATE FUNCTION version_rollups() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rollup_versions (team_id, day)
    SELECT DISTINCT c.team_id, date_bin('1 day', c.start, 'epoch'::timestamptz)
      FROM changed c
     WHERE c.level > 0
     ORDER BY 1, 2
        ON CONFLICT (team_id, day) DO UPDATE SET version = excluded.version;
    RETURN NULL;
END
$$;

CREATE TRIGGER rollups_inserted AFTER INSERT ON rollups
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION version_rollups();
CREATE TRIGGER rollups_updated AFTER UPDATE ON rollups
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION version_rollups();
CREATE TRIGGER rollups_deleted AFTER DELETE ON rollups
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION version_rollups();

-- TRUNCATE removes rollups without saying which: no day has any then.
CREATE FUNCTION forget_rollup_versions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM rollup_versions;
    RETURN NULL;
END
$$;

CREATE TRIGGER rollups_truncated AFTER TRUNCATE ON rollups
    FOR EACH STATEMENT EXECUTE FUNCTION forget_rollup_versions();

-- What an answer said of a period that is over, as JSON. `id` is a digest of the question and the period, `versions`
-- are those of its UTC days from `first_day` on (null: a day without rollups) when it was counted. It serves while
-- these are the versions of its days, and may be removed at any time.
CREATE TABLE metric_pieces (
    team_id   uuid        NOT NULL,
    id        uuid        NOT NULL,
    first_day timestamptz NOT NULL,
    versions  uuid[]      NOT NULL,
    rows      integer     NOT NULL,
    counts    bigint[]    NOT NULL,
    content   bytea       NOT NULL,
    made_at   timestamptz NOT NULL,
    PRIMARY KEY (team_id, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_limit = 1000,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_limit = 1000
);
ALTER TABLE metric_pieces ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE INDEX metric_pieces_made ON metric_pieces (made_at);

-- What mailbox providers did with the mail of a domain on a UTC day. The provider without a name stands for all that
-- have no row of their own.
CREATE TABLE provider_days (
    team_id           uuid        NOT NULL,
    domain_id         uuid        NOT NULL,
    day               timestamptz NOT NULL,
    provider          text        NOT NULL,
    sent              bigint      NOT NULL,
    delivered         bigint      NOT NULL,
    delivery_delayed  bigint      NOT NULL,
    bounced           bigint      NOT NULL,
    bounced_permanent bigint      NOT NULL,
    complained        bigint      NOT NULL,
    PRIMARY KEY (team_id, domain_id, day, provider)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

-- Up to when the history is counted for the table above.
CREATE TABLE provider_progress (
    id            smallint    NOT NULL PRIMARY KEY CHECK (id = 1),
    counted_until timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Up to where retention has removed emails of a team. `metric_increments` still counts them, so what is
-- older (`before`, a quarter hour's start, and `first_id`, the least id of that instant) has no history to
-- be compared with.
CREATE TABLE purges (
    team_id  uuid        NOT NULL PRIMARY KEY,
    before   timestamptz NOT NULL,
    first_id uuid        NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Up to where retention has removed rollups of a team, but for those of broadcasts: `before` is the start of a
-- UTC day, `first_id` the least id of that instant. What is older has no counts that the history could be
-- compared with.
CREATE TABLE rollup_purges (
    team_id  uuid        NOT NULL PRIMARY KEY,
    before   timestamptz NOT NULL,
    first_id uuid        NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Receiving ------------------------------------------------------------------------------------------

-- What lists show of a received email; one row for each team of a transaction. `recipients` are the addresses of
-- the envelope that are this team's, in the order of the session; `spf`, `dkim` and `dmarc` are results by their
-- names, `spam_reason` says why a mail is spam. `complete` is false where a limit left something undivided. The
-- last two are written by `usage` alone: the units that its day and its month had with this email, where that was
-- more than the quota.
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
    above_daily   bigint,
    above_monthly bigint,
    inboxes       uuid[],
    verdicts      json,
    PRIMARY KEY (team_id, id)
) WITH (
    toast_tuple_target = 8160,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05
);
-- A Message-ID may have any length.
CREATE INDEX received_emails_message ON received_emails (team_id, (md5(message_id)::uuid), id);
-- The address in From, which is its last word.
CREATE INDEX received_emails_sender
  ON received_emails (team_id, (md5(lower(substring(right(sender, 330) FROM '([^<> ]+)>?$')))::uuid), id);

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
) WITH (
    toast_tuple_target = 8160,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_cost_limit = 1000,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_limit = 1000
);
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
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05
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

-- Work -----------------------------------------------------------------------------------------------

-- The queue: one email to one group of recipients. Only live work is here; a finished item is deleted
-- and its recipients carry the outcome. `attempt` counts claims and fences outcomes; `tries` counts
-- attempts that ended in a delay and picks the next step of the retry schedule. `lost` counts holders that
-- ended without an outcome, and `uncertain` those of them that may have sent the mail; `begun` counts, from the first
-- of the lost on, attempts that were begun since the last outcome (an item that takes its process with it is quarantined).
-- Every claim moves the row between the two partial indexes, so its updates are never free of them; what is
-- handed over in memory is only inserted and deleted. `restored_due_at` is when work was due that a restore has put
-- aside (it is due at an instant that never comes); `webhook_deliveries` and `jobs` have it too. Dead versions are vacuumed early and without pauses.
CREATE TABLE deliveries (
    team_id          uuid        NOT NULL,
    email_id         uuid        NOT NULL,
    grp              smallint    NOT NULL,
    destination      text        NOT NULL,
    due_at           timestamptz NOT NULL,
    owner            uuid,
    leased_until     timestamptz,
    attempt          integer     NOT NULL DEFAULT 0,
    tries            integer     NOT NULL DEFAULT 0,
    uncertain        integer     NOT NULL DEFAULT 0,
    begun            smallint    NOT NULL DEFAULT 0,
    released         boolean     NOT NULL,
    reached          boolean     NOT NULL DEFAULT false,
    first_attempt_at timestamptz,
    last_host        text,
    last_reply       text,
    reason           text,
    created_at       timestamptz NOT NULL,
    restored_due_at  timestamptz,
    lost             smallint    NOT NULL DEFAULT 0,
    PRIMARY KEY (team_id, email_id, grp),
    CHECK ((owner IS NULL) = (leased_until IS NULL))
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_analyze_threshold = 5000
);
CREATE INDEX deliveries_due ON deliveries (team_id, destination, due_at) WHERE owner IS NULL;
CREATE INDEX deliveries_leased ON deliveries (leased_until) WHERE owner IS NOT NULL;

-- What the operator has stopped: mail of a team (the nil id: of every team) to a destination ('': to any).
CREATE TABLE paused (
    team_id     uuid        NOT NULL,
    destination text        NOT NULL,
    reason      text,
    paused_at   timestamptz NOT NULL,
    PRIMARY KEY (team_id, destination)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Other background work: fetching attachments, purges, checks. Same lease rules as `deliveries`, and `begun` as
-- there. `site` is the host that a job waits for, where its kind has one.
CREATE TABLE jobs (
    team_id      uuid        NOT NULL,
    id           uuid        NOT NULL,
    kind         text        NOT NULL,
    subject_id   uuid        NOT NULL,
    due_at       timestamptz NOT NULL,
    owner        uuid,
    leased_until timestamptz,
    attempt      integer     NOT NULL DEFAULT 0,
    tries        integer     NOT NULL DEFAULT 0,
    reason       text,
    created_at   timestamptz NOT NULL,
    site         text        NOT NULL DEFAULT '',
    restored_due_at timestamptz,
    begun        smallint    NOT NULL DEFAULT 0,
    PRIMARY KEY (team_id, id),
    CONSTRAINT jobs_team_kind_subject_key UNIQUE (team_id, kind, subject_id),
    CHECK ((owner IS NULL) = (leased_until IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX jobs_due ON jobs (due_at) WHERE owner IS NULL;
CREATE INDEX jobs_of_teams ON jobs (kind, team_id, due_at) WHERE owner IS NULL;
CREATE INDEX jobs_leased ON jobs (leased_until) WHERE owner IS NOT NULL;

-- Who may hold leases: one row per process, refreshed while it lives. `knows_copies` is false where its release is older
-- than copies of broadcasts. `route` is where the process delivers to, without credentials; null where it does not.
CREATE TABLE processes (
    id         uuid        NOT NULL PRIMARY KEY,
    host       text        NOT NULL,
    pid        integer     NOT NULL,
    pid_start  bigint      NOT NULL,
    roles      text        NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    knows_copies boolean   NOT NULL DEFAULT false,
    route      text
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- The limit of a team's API requests where several nodes share it: the window of one second that is open, how much
-- of it the nodes have taken, and what the last one got (docs/decisions/0054). Unlogged: it is over in a second.
CREATE UNLOGGED TABLE rate_windows (
    team_id uuid        NOT NULL PRIMARY KEY,
    ends_at timestamptz NOT NULL,
    most    integer     NOT NULL,
    granted integer     NOT NULL,
    taken   integer     NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);

-- The nodes that count API requests: one row for each running server, refreshed every second by the database's clock.
CREATE UNLOGGED TABLE rate_nodes (
    id      text        NOT NULL PRIMARY KEY,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);

-- Policies of MTA-STS by the recipients' domain, each until it expires (RFC 8461). Global: they belong to no team.
CREATE TABLE mta_sts_policies (
    domain     text        NOT NULL PRIMARY KEY,
    id         text        NOT NULL,
    mode       text        NOT NULL CHECK (mode IN ('enforce', 'testing', 'none')),
    hosts      text[]      NOT NULL,
    max_age    integer     NOT NULL,
    fetched_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Complaints of receiving sites (a relay, or a set of MX hosts) to one process, shared with the others.
CREATE TABLE sites (
    site         text             NOT NULL PRIMARY KEY,
    signal       text             NOT NULL CHECK (signal IN ('SLOW', 'CROWDED', 'UNREACHABLE')),
    closed_until timestamptz      NOT NULL,
    rate         double precision,
    told_by      uuid             NOT NULL,
    changed_at   timestamptz      NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX sites_changed ON sites (changed_at);

-- Destinations that mail of a team has reached: that one of them does not exist is looked at twice.
CREATE TABLE destinations (
    team_id       uuid        NOT NULL,
    destination   text        NOT NULL,
    reached_at    timestamptz NOT NULL,
    missing_since timestamptz,
    PRIMARY KEY (team_id, destination)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX destinations_age ON destinations (reached_at);

-- One answer per key for 24 hours; the row is in the same commit as the effects it answers for.
CREATE TABLE idempotency_keys (
    team_id     uuid        NOT NULL,
    scope       text        NOT NULL,
    key         text        NOT NULL,
    fingerprint bytea       NOT NULL,
    status      smallint    NOT NULL,
    body        bytea       NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (team_id, scope, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- Route `capture`: every mail that would have left the machine. One row per email; recipients of
-- further groups are added to it.
-- `data` of mail of this installation to people is sealed.
CREATE TABLE captured (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    email_id   uuid        NOT NULL,
    at         timestamptz NOT NULL,
    mail_from  text        NOT NULL,
    recipients text[]      NOT NULL,
    sender     text        NOT NULL,
    subject    text        NOT NULL,
    size       bigint      NOT NULL,
    data       bytea,
    blob       text,
    sealed     boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (team_id, id),
    CONSTRAINT captured_team_email_key UNIQUE (team_id, email_id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_cost_limit = 1000,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_limit = 1000
);
CREATE INDEX captured_order ON captured (id);
ALTER TABLE captured ALTER COLUMN data SET STORAGE EXTERNAL;

-- When the clock of one of the machines was set, and by how much; `at` is what it said afterwards. The last
-- hundred are kept. Global.
CREATE TABLE clock_jumps (
    id      uuid             NOT NULL PRIMARY KEY,
    at      timestamptz      NOT NULL,
    seconds double precision NOT NULL,
    kept_at timestamptz      NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Its one row is there while the installation is in maintenance. Global.
CREATE TABLE maintenance (
    id          smallint    NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    since       timestamptz NOT NULL,
    retry_after integer     NOT NULL CHECK (retry_after > 0)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Backups that were made; the last hundred are kept. Global.
CREATE TABLE backups (
    name        text        NOT NULL PRIMARY KEY,
    target      text        NOT NULL,
    snapshot_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    octets      bigint      NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- The last run of `doctor` and of `verify`, with its result. Global.
CREATE TABLE examinations (
    kind        text        NOT NULL PRIMARY KEY CHECK (kind IN ('doctor', 'verify')),
    run_id      uuid        NOT NULL,
    started_at  timestamptz NOT NULL,
    ends_by     timestamptz NOT NULL,
    finished_at timestamptz,
    is_healthy  boolean,
    result      json
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Its one row is there from a restore on, until the work that it has put aside is released or dropped. Global.
CREATE TABLE restored (
    id          smallint    NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    backup      text        NOT NULL,
    snapshot_at timestamptz NOT NULL,
    restored_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- What belongs to the database but lives outside of it. Every start compares, so that a process with another
-- key ring or another blob store does not work on this database. Global.

-- Keys of the key ring that sealed values may need: `probe` was sealed by the key for `context`. One that the
-- operator has given up (`abandoned_at`) is not asked for any more.
CREATE TABLE key_ring_keys (
    id           text        NOT NULL PRIMARY KEY,
    probe        bytea       NOT NULL,
    context      bytea       NOT NULL,
    since        timestamptz NOT NULL DEFAULT now(),
    abandoned_at timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- The id that lies in the blob store of this database.
CREATE TABLE blob_store (
    id       smallint NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    store_id uuid     NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Requests and units ---------------------------------------------------------------------------------

-- One row per authenticated API request; the id is the answer's `x-request-id`. Bodies are masked and cut to
-- size. Where `refers` is true, numbers in the places of `html` and `text` of `request_body` stand for those of the
-- email at that place of `response_body`, whose content has them already.
CREATE TABLE logs (
    team_id         uuid        NOT NULL,
    id              uuid        NOT NULL,
    created_at      timestamptz NOT NULL,
    endpoint        text        NOT NULL,
    method          text        NOT NULL,
    response_status smallint    NOT NULL,
    user_agent      text,
    request_body    json,
    response_body   json,
    refers          boolean     NOT NULL,
    PRIMARY KEY (team_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);

-- What changes the units that a team has used beside the emails that it sent, which the rollups count: emails
-- received, and units given back because a scheduled email was canceled, under the UTC day it was accepted on.
-- `octets` is the size of the mail received on that day that the team still has; such a day is kept.
CREATE TABLE usage_days (
    team_id  uuid   NOT NULL,
    day      date   NOT NULL,
    received bigint NOT NULL DEFAULT 0,
    returned bigint NOT NULL DEFAULT 0,
    octets   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (team_id, day)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Webhooks -------------------------------------------------------------------------------------------

-- Who wants which events. `secrets` are sealed by the key ring (the row's id is part of the seal), newest
-- first; `secret_ends` says until when each still signs, null for the newest. A listener is the temporary
-- kind behind `pillarbox webhooks listen`: it is read, never called, and no list shows it.
-- `epoch` counts how often the webhook was disabled: a delivery of an earlier epoch is dead, however the
-- webhook stands now, so disabling is one row whatever waits. The failure clock runs from `failing_since`,
-- the first failed attempt after the last success, of `failing_event`; `failing_several` once another event
-- has failed too. From a minute after `since` on it has a row for every event of its kinds: `since` is when it was
-- made, enabled or given other kinds, and retention moves it on.
CREATE TABLE webhooks (
    team_id          uuid        NOT NULL,
    id               uuid        NOT NULL,
    created_at       timestamptz NOT NULL,
    kind             text        NOT NULL DEFAULT 'endpoint' CHECK (kind IN ('endpoint', 'listener')),
    endpoint         text        NOT NULL,
    events           text[]      NOT NULL,
    status           text        NOT NULL DEFAULT 'enabled' CHECK (status IN ('enabled', 'disabled')),
    epoch            integer     NOT NULL DEFAULT 0,
    secrets          bytea[]     NOT NULL,
    secret_ends      timestamptz[] NOT NULL,
    failing_since    timestamptz,
    failing_event    uuid,
    failing_several  boolean     NOT NULL DEFAULT false,
    told_failing_at  timestamptz,
    last_failure_at  timestamptz,
    last_status_code smallint,
    seen_at          timestamptz,
    since            timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (team_id, id),
    CHECK (cardinality(secrets) > 0 AND cardinality(secrets) = cardinality(secret_ends))
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- The bodies, each made once: when the event happens, or when the first delivery of it is claimed.
CREATE TABLE webhook_events (
    team_id uuid        NOT NULL,
    id      uuid        NOT NULL,
    kind    text        NOT NULL,
    at      timestamptz NOT NULL,
    payload bytea       NOT NULL,
    PRIMARY KEY (team_id, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05
);

-- The queue of the dispatcher: one event to one webhook; only live work is here. `replay` is nil for the
-- scheduled delivery (pending while `tries` is 0, attempting from then on) and the id of an extra attempt
-- otherwise. `subject_id`, `position` and `detail` are what the body is made of where `webhook_events` does
-- not have it yet. `attempt` counts claims and fences outcomes. A row whose `epoch` is not that of its webhook
-- is dead: a claim takes it away, a scheduled one with the outcome `failed`. Same lease rules as `deliveries`.
CREATE TABLE webhook_deliveries (
    team_id      uuid        NOT NULL,
    webhook_id   uuid        NOT NULL,
    event_id     uuid        NOT NULL,
    replay       uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    kind         text        NOT NULL,
    at           timestamptz NOT NULL,
    subject_id   uuid,
    position     smallint,
    detail       json,
    epoch        integer     NOT NULL,
    due_at       timestamptz NOT NULL,
    owner        uuid,
    leased_until timestamptz,
    attempt      integer     NOT NULL DEFAULT 0,
    tries        smallint    NOT NULL DEFAULT 0,
    restored_due_at timestamptz,
    PRIMARY KEY (team_id, webhook_id, event_id, replay),
    CHECK ((owner IS NULL) = (leased_until IS NULL))
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_analyze_threshold = 5000
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (team_id, webhook_id, due_at, event_id)
 WHERE owner IS NULL;
CREATE INDEX webhook_deliveries_leased ON webhook_deliveries (owner, leased_until) WHERE owner IS NOT NULL;
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (team_id, webhook_id, owner) WHERE owner IS NOT NULL;

-- How scheduled deliveries ended. A replay may turn `failed` into `success`, nothing turns it back. One that
-- ended without an attempt keeps what its body is made of, so that it can be shown or replayed.
CREATE TABLE webhook_outcomes (
    team_id    uuid        NOT NULL,
    webhook_id uuid        NOT NULL,
    event_id   uuid        NOT NULL,
    kind       text        NOT NULL,
    at         timestamptz NOT NULL,
    status     text        NOT NULL CHECK (status IN ('success', 'failed')),
    subject_id uuid,
    position   smallint,
    detail     json,
    PRIMARY KEY (team_id, webhook_id, event_id)
) WITH (
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000
);

-- Every answer, and every attempt that got none (code 0 and a short reason).
CREATE TABLE webhook_attempts (
    team_id          uuid        NOT NULL,
    webhook_id       uuid        NOT NULL,
    event_id         uuid        NOT NULL,
    id               uuid        NOT NULL,
    sent_at          timestamptz NOT NULL,
    http_status_code smallint    NOT NULL,
    response         text        NOT NULL,
    PRIMARY KEY (team_id, webhook_id, event_id, id)
) WITH (
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000
);

-- Events of teams (events.md) ----------------------------------------------------------------------------

-- What a team says of an event: `schema` is the types of what its payload may hold.
CREATE TABLE event_definitions (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    name       text        NOT NULL,
    schema     json,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (team_id, id),
    CONSTRAINT event_definitions_team_name_key UNIQUE (team_id, name)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Events that wait until they are distributed, those of a contact in one partition, by `number`; then they are
-- gone. `address` and `email` as in `contacts`; `contact_id` where the sender named the contact by it. One that
-- could not be distributed has `failed_at`, and stays for a while.
CREATE TABLE events (
    team_id    uuid        NOT NULL,
    id         uuid        NOT NULL,
    number     bigint      GENERATED ALWAYS AS IDENTITY,
    partition  smallint    NOT NULL CHECK (partition BETWEEN 0 AND 15),
    name       text        NOT NULL,
    contact_id uuid,
    address    text        NOT NULL,
    email      text,
    payload    json        NOT NULL,
    at         timestamptz NOT NULL,
    tries      smallint    NOT NULL DEFAULT 0,
    failed_at  timestamptz,
    reason     text,
    PRIMARY KEY (team_id, id),
    CHECK ((failed_at IS NULL) = (reason IS NULL))
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.1,
    autovacuum_analyze_threshold = 5000
);
CREATE INDEX events_waiting ON events (team_id, partition, number) WHERE failed_at IS NULL;
CREATE INDEX events_failed ON events (failed_at) WHERE failed_at IS NOT NULL;
