
-- What a team plays with.
CREATE TABLE toys (
    team_id uuid NOT NULL,
    id      uuid NOT NULL,
    name    text NOT NULL,
    PRIMARY KEY (team_id, id)
);
