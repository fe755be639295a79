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
