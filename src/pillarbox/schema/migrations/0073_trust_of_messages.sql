-- compatible since: 16
-- What is known about each message that came into an inbox, and to whom inboxes have written (docs/decisions/0193). The
-- previous release neither reads nor writes them; messages that it stores have no row.
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

CREATE TABLE inbox_correspondents (
    team_id     uuid NOT NULL,
    address_key uuid NOT NULL,
    PRIMARY KEY (team_id, address_key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
