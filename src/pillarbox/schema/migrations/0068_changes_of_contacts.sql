-- compatible since: 16
-- Which pages have contacts that were changed lately. It takes no room, and updates stay as cheap as they were.
DROP INDEX CONCURRENTLY IF EXISTS contacts_updated_at;
CREATE INDEX CONCURRENTLY contacts_updated_at ON contacts USING brin (updated_at)
  WITH (pages_per_range = 16, autosummarize = on);
