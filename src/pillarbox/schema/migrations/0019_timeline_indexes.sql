-- compatible since: 16
-- Outside a transaction, beside the writers. What an interrupted run left behind is dropped first.
-- `timeline_by_email` becomes the primary key in 0020.

DROP INDEX CONCURRENTLY IF EXISTS timeline_by_email;
CREATE UNIQUE INDEX CONCURRENTLY timeline_by_email ON timeline (team_id, email_id, id);
DROP INDEX CONCURRENTLY IF EXISTS timeline_seldom;
CREATE INDEX CONCURRENTLY timeline_seldom ON timeline (team_id, kind, email_id)
 WHERE kind NOT IN ('queued', 'sent', 'delivered');
