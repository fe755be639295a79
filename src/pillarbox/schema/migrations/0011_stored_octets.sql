-- How many octets of the mail that a team received on a day it still has (INB-09).

ALTER TABLE usage_days ADD COLUMN octets bigint NOT NULL DEFAULT 0;

INSERT INTO usage_days AS u (team_id, day, octets)
SELECT e.team_id, (e.created_at AT TIME ZONE 'UTC')::date, sum(e.size)
  FROM received_emails e
 GROUP BY 1, 2
    ON CONFLICT (team_id, day) DO UPDATE SET octets = excluded.octets;
