-- compatible since: 16
-- The page of a contact shows its runs, and the erasure of a person finds them. Outside a transaction, beside the writers. What an
-- interrupted run left behind is dropped first.

DROP INDEX CONCURRENTLY IF EXISTS automation_runs_of_contact;
CREATE INDEX CONCURRENTLY automation_runs_of_contact ON automation_runs (team_id, contact_id, id);
