-- compatible since: 16
-- Received mail is found by its Message-ID (docs/decisions/0177). Outside a transaction, beside the writers. What an interrupted
-- run left behind is dropped first.

DROP INDEX CONCURRENTLY IF EXISTS received_emails_message;
CREATE INDEX CONCURRENTLY received_emails_message ON received_emails (team_id, (md5(message_id)::uuid), id);
