-- compatible since: 16
-- Outside a transaction, beside the writers. What an interrupted run left behind is dropped first.

DROP INDEX CONCURRENTLY IF EXISTS suppressions_origin;
CREATE INDEX CONCURRENTLY suppressions_origin ON suppressions (team_id, origin, id);
