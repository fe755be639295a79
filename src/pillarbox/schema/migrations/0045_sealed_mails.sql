-- compatible since: 16
-- What mail of this installation to people says, sealed until it is delivered (docs/decisions/0158). The previous release sends
-- such mail without it, so its text says what to do then.
CREATE TABLE sealed_mails (
    team_id    uuid  NOT NULL,
    email_id   uuid  NOT NULL,
    text       bytea NOT NULL,
    PRIMARY KEY (team_id, email_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE captured ADD COLUMN sealed boolean NOT NULL DEFAULT false;
