-- compatible since: 16
-- Another address to log in with (docs/decisions/0126).

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
