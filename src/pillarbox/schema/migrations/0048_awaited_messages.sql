-- compatible since: 16
-- Ids that messages of a thread name and that no message of the inbox has (docs/decisions/0170). The previous release writes none.
CREATE TABLE inbox_awaited_messages (
    team_id     uuid        NOT NULL,
    inbox_id    uuid        NOT NULL,
    message_key bigint      NOT NULL,
    thread_id   uuid        NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (team_id, inbox_id, message_key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX inbox_awaited_messages_age ON inbox_awaited_messages (team_id, inbox_id, at);
