-- compatible since: 16
-- accepted removal: the primary key of `timeline` is another one, and both releases read by index with either

-- One index for both: the history is read by its email alone. `timeline_email` and the old key were 150 octets a mail.
ALTER TABLE timeline DROP CONSTRAINT timeline_pkey, ADD CONSTRAINT timeline_pkey PRIMARY KEY USING INDEX timeline_by_email;
DROP INDEX timeline_email;

CREATE TABLE search_blocks (
    team_id    uuid    NOT NULL,
    after_id   uuid    NOT NULL,
    last_id    uuid    NOT NULL,
    emails     integer NOT NULL,
    bits       bytea   NOT NULL,
    is_settled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (team_id, after_id),
    CHECK (after_id < last_id)
) WITH (toast_tuple_target = 8160);
ALTER TABLE search_blocks ALTER COLUMN bits SET STORAGE EXTERNAL;
CREATE INDEX search_blocks_unsettled ON search_blocks (last_id) WHERE NOT is_settled;
