
-- What a team plays with.
CREATE TABLE toys (
    team_id uuid NOT NULL,
    id      uuid NOT NULL,
    name    text NOT NULL,
    secret  bytea,
    PRIMARY KEY (team_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);
