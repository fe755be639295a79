-- compatible since: 16
-- Marking a thread writes its row alone, however many messages it has (docs/decisions/0104).

-- How often the thread was marked, and as what the last time.
ALTER TABLE inbox_threads
    ADD COLUMN marks integer NOT NULL DEFAULT 0,
    ADD COLUMN marked_read boolean NOT NULL DEFAULT true;

-- How often its thread had been marked when the message came. While that is still so, `is_read` counts.
ALTER TABLE inbox_messages ADD COLUMN marks integer NOT NULL DEFAULT 0;
