-- compatible since: 16
-- How many attempts were begun, after a first loss of the process, that lost theirs too (DUR-13). The previous release
-- leaves it as it is.
ALTER TABLE jobs ADD COLUMN begun smallint NOT NULL DEFAULT 0;
ALTER TABLE automation_work ADD COLUMN begun smallint NOT NULL DEFAULT 0;
