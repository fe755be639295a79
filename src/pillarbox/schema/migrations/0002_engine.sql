-- Outcomes are committed in larger batches: room on the page for a second version of nearly every row.
ALTER TABLE emails SET (fillfactor = 50);
ALTER TABLE recipients SET (fillfactor = 60);

-- What receiving sites (a relay, or a set of MX hosts) complained of to one process, for the others to hear.
CREATE TABLE sites (
    site         text             NOT NULL PRIMARY KEY,
    signal       text             NOT NULL CHECK (signal IN ('SLOW', 'CROWDED', 'UNREACHABLE')),
    closed_until timestamptz      NOT NULL,
    rate         double precision,
    told_by      uuid             NOT NULL,
    changed_at   timestamptz      NOT NULL
);
CREATE INDEX sites_changed ON sites (changed_at);

-- Destinations that mail of a team has reached: that one of them does not exist is looked at twice.
CREATE TABLE destinations (
    team_id       uuid        NOT NULL,
    destination   text        NOT NULL,
    reached_at    timestamptz NOT NULL,
    missing_since timestamptz,
    PRIMARY KEY (team_id, destination)
);
CREATE INDEX destinations_age ON destinations (reached_at);
