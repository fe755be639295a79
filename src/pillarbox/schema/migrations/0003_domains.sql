-- Domains: what DNS showed of them, the clocks of their checks, keys in rotation, and claims.

-- Checks. `findings` holds for each record what was expected, what was found, where and when.
ALTER TABLE domains
    ADD COLUMN tracking_ok     boolean NOT NULL DEFAULT false,
    ADD COLUMN verifying_since timestamptz,
    ADD COLUMN checked_at      timestamptz,
    ADD COLUMN findings        json    NOT NULL DEFAULT '{}';

-- Keys in rotation: one signs, one may wait for its record, replaced ones are listed until `retires_at`.
ALTER TABLE dkim_keys
    ADD COLUMN retires_at timestamptz,
    ADD CONSTRAINT dkim_keys_team_domain_selector_key UNIQUE (team_id, domain_id, selector),
    ADD CHECK (NOT active OR retires_at IS NULL);
DROP INDEX dkim_keys_domain;
CREATE UNIQUE INDEX dkim_keys_active ON dkim_keys (team_id, domain_id, algorithm) WHERE active;
CREATE UNIQUE INDEX dkim_keys_waiting ON dkim_keys (team_id, domain_id, algorithm)
 WHERE NOT active AND retires_at IS NULL;

-- Claims of names that another team has verified, and since when a name is owned.
ALTER TABLE domains
    ADD COLUMN claim_id uuid;
ALTER TABLE directory_domains
    ADD COLUMN owned_at timestamptz;
UPDATE directory_domains SET owned_at = now() WHERE owned;
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
);
CREATE INDEX domain_claims_domain ON domain_claims (team_id, domain_id, id);
CREATE UNIQUE INDEX domain_claims_open ON domain_claims (team_id, name)
    WHERE status IN ('pending', 'verified', 'blocked');
