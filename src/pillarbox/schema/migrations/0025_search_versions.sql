-- compatible since: 16
-- accepted lock: the table has a row for a thousand emails, so its index is built at once
-- Search blocks say which terms they know. Those that are there, and those that a previous release writes, are of
-- version 1; a job describes their emails anew, and until then questions read all of these.

ALTER TABLE search_blocks ADD COLUMN version smallint NOT NULL DEFAULT 1;
CREATE INDEX search_blocks_version ON search_blocks (version);
