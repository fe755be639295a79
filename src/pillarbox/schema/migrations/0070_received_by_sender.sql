-- compatible since: 16
-- The page of a contact shows the mail that came from its address (docs/decisions/0188). Outside a transaction, beside the
-- writers. What an interrupted run left behind is dropped first.

DROP INDEX CONCURRENTLY IF EXISTS received_emails_sender;
CREATE INDEX CONCURRENTLY received_emails_sender
  ON received_emails (team_id, (md5(lower(substring(right(sender, 330) FROM '([^<> ]+)>?$')))::uuid), id);
