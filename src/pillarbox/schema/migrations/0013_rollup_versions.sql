-- The state of the rollups of a UTC day (`day` is its start): a new version with each change of a rollup of a
-- quarter hour or longer, whoever makes it. What was read of the day holds as long as its version stands. A day
-- without a row has no rollups.
CREATE TABLE rollup_versions (
    team_id uuid        NOT NULL,
    day     timestamptz NOT NULL,
    version uuid        NOT NULL DEFAULT gen_random_uuid(),
    PRIMARY KEY (team_id, day)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

CREATE FUNCTION version_rollups() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rollup_versions (team_id, day)
    SELECT DISTINCT c.team_id, date_bin('1 day', c.start, 'epoch'::timestamptz)
      FROM changed c
     WHERE c.level > 0
     ORDER BY 1, 2
        ON CONFLICT (team_id, day) DO UPDATE SET version = excluded.version;
    RETURN NULL;
END
$$;

CREATE TRIGGER rollups_inserted AFTER INSERT ON rollups
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION version_rollups();
CREATE TRIGGER rollups_updated AFTER UPDATE ON rollups
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION version_rollups();
CREATE TRIGGER rollups_deleted AFTER DELETE ON rollups
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION version_rollups();

INSERT INTO rollup_versions (team_id, day)
SELECT DISTINCT team_id, date_bin('1 day', start, 'epoch'::timestamptz) FROM rollups WHERE level > 0;
