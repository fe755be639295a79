-- compatible since: 16
-- Which backups were made, for `pillarbox upgrade --check`; and work that a restore has put aside: it was open when
-- the backup was made, and may have been done since. The columns say when such work was due.

CREATE TABLE backups (
    name        text        NOT NULL PRIMARY KEY,
    target      text        NOT NULL,
    snapshot_at timestamptz NOT NULL,
    finished_at timestamptz NOT NULL,
    octets      bigint      NOT NULL
);

-- Its one row is there from a restore on, until the work that it has put aside is released or dropped.
CREATE TABLE restored (
    id          smallint    NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    backup      text        NOT NULL,
    snapshot_at timestamptz NOT NULL,
    restored_at timestamptz NOT NULL
);

ALTER TABLE deliveries ADD COLUMN restored_due_at timestamptz;
ALTER TABLE webhook_deliveries ADD COLUMN restored_due_at timestamptz;
ALTER TABLE jobs ADD COLUMN restored_due_at timestamptz;
