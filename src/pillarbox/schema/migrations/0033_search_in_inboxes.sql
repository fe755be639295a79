-- compatible since: 16
-- Finding messages of inboxes by their words (docs/decisions/0100).

-- As far as this id the messages of the inbox are in blocks, but for those in inbox_search_late.
ALTER TABLE inboxes ADD COLUMN described_to uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';

-- Messages in the order of their ids, one or more columns each: `messages` has the id of the message and of its
-- thread for each column, `begins` a bit for each column that is the first one of its message.
CREATE TABLE inbox_search_blocks (
    team_id   uuid     NOT NULL,
    inbox_id  uuid     NOT NULL,
    id        uuid     NOT NULL,
    version   smallint NOT NULL,
    columns   integer  NOT NULL,
    oldest_id uuid     NOT NULL,
    newest_id uuid     NOT NULL,
    begins    bytea    NOT NULL,
    messages  bytea    NOT NULL,
    PRIMARY KEY (team_id, inbox_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE inbox_search_blocks ALTER COLUMN begins SET STORAGE EXTERNAL;
ALTER TABLE inbox_search_blocks ALTER COLUMN messages SET STORAGE EXTERNAL;

-- The rows of the matrix of a block, 64 in each part: a bit for each column.
CREATE TABLE inbox_search_rows (
    team_id  uuid     NOT NULL,
    inbox_id uuid     NOT NULL,
    block_id uuid     NOT NULL,
    part     smallint NOT NULL,
    bits     bytea    NOT NULL,
    PRIMARY KEY (team_id, inbox_id, block_id, part)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE inbox_search_rows ALTER COLUMN bits SET STORAGE EXTERNAL;

-- Messages that no block has, although their ids are old enough: they were committed late.
CREATE TABLE inbox_search_late (
    team_id  uuid NOT NULL,
    inbox_id uuid NOT NULL,
    id       uuid NOT NULL,
    PRIMARY KEY (team_id, inbox_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);

-- Inboxes that may have enough messages for another block.
CREATE TABLE inbox_search_due (
    team_id  uuid NOT NULL,
    inbox_id uuid NOT NULL,
    PRIMARY KEY (team_id, inbox_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
