-- Jobs that wait for a host that somebody has chosen are begun in turn, over teams and over hosts.
ALTER TABLE jobs ADD COLUMN site text NOT NULL DEFAULT '';
CREATE INDEX jobs_of_teams ON jobs (kind, team_id, due_at) WHERE owner IS NULL;
