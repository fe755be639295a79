-- A team's own limit of domains; and up to where retention has removed rollups.

ALTER TABLE teams ADD COLUMN most_domains integer CHECK (most_domains >= 0);

-- Up to where retention has removed rollups of a team, but for those of broadcasts: `before` is the start of a
-- UTC day, `first_id` the least id of that instant. What is older has no counts that the history could be
-- compared with.
CREATE TABLE rollup_purges (
    team_id  uuid        NOT NULL PRIMARY KEY,
    before   timestamptz NOT NULL,
    first_id uuid        NOT NULL
);
