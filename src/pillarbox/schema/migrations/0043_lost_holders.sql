-- compatible since: 16
-- How often an item has lost its holder, apart from how often it may have gone out (docs/decisions/0157). The previous release
-- counts both as `uncertain`, and does not read this.
ALTER TABLE deliveries ADD COLUMN lost smallint NOT NULL DEFAULT 0;
