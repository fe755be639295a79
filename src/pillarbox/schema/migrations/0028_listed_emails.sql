-- compatible since: 25
-- Outside a transaction, beside the writers. What an interrupted run left behind is dropped first.

DROP INDEX CONCURRENTLY IF EXISTS emails_listed;
CREATE INDEX CONCURRENTLY emails_listed ON emails (team_id, id) WHERE broadcast_id IS NULL;
