-- compatible since: 16
-- A key acts with the role of who made it (docs/decisions/0151).

-- `grant_id` is the grant of the program that made it; it ends with it. `is_kept`: an admin has made it the team's.
ALTER TABLE api_keys ADD COLUMN grant_id uuid;
ALTER TABLE api_keys ADD COLUMN is_kept boolean NOT NULL DEFAULT false;
