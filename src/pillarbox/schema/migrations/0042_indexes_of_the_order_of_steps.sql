-- compatible since: 16
-- Outside a transaction, beside the writers. What an interrupted run left behind is dropped first.

DROP INDEX CONCURRENTLY IF EXISTS automation_work_order;
CREATE INDEX CONCURRENTLY automation_work_order ON automation_work (team_id, contact_id, order_at, run_id, position)
 WHERE order_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS automation_work_unordered;
CREATE INDEX CONCURRENTLY automation_work_unordered ON automation_work (team_id, due_at)
 WHERE order_at IS NULL AND owner IS NULL;
