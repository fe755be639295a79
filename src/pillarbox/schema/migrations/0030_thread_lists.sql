-- compatible since: 16
-- accepted rewrite: no release before this one has inboxes, so the tables are empty
-- accepted removal: no release before this one has inboxes, so nobody uses the indexes
-- accepted lock: no release before this one has inboxes, so nobody writes
-- Lists of threads (docs/decisions/0094): a list is read from one index, whatever its filters are.

ALTER TABLE inbox_threads ADD COLUMN list_class smallint NOT NULL GENERATED ALWAYS AS (
    CASE folder WHEN 'inbox' THEN 0 WHEN 'archive' THEN 4 WHEN 'spam' THEN 8 WHEN 'sent' THEN 12 ELSE 16 END
    + CASE WHEN unread = 0 THEN 2 ELSE 0 END
    + CASE WHEN messages > inbound THEN 1 ELSE 0 END) STORED;
DROP INDEX inbox_threads_unread;
DROP INDEX inbox_threads_with_sent;
CREATE INDEX inbox_threads_list ON inbox_threads (team_id, inbox_id, list_class, received_at, id);

-- Where the thread stands in lists, as in its own row.
ALTER TABLE inbox_thread_labels ADD COLUMN list_class smallint NOT NULL;
ALTER TABLE inbox_thread_labels ADD COLUMN received_at timestamptz NOT NULL;
DROP INDEX inbox_thread_labels_label;
CREATE INDEX inbox_thread_labels_list
    ON inbox_thread_labels (team_id, label_id, list_class, received_at, thread_id);
