-- compatible since: 16
-- Events that teams send, and what they say of their payloads.

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
