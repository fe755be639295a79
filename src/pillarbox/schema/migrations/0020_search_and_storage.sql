-- compatible since: 16
-- accepted removal: the primary key of `timeline` is another one, and both releases read by index with either
-- accepted scan: the index of the new key is there already (0019) and its columns are NOT NULL, so nothing is read

-- One index for both: the history is read by its email alone. The two took 135 octets a mail more than this one.
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

-- Bodies are compressed from now on where the server was built with LZ4; others keep them as they are.
DO $$
BEGIN
    ALTER TABLE contents
        ALTER COLUMN html SET COMPRESSION lz4, ALTER COLUMN html SET STORAGE MAIN,
        ALTER COLUMN text SET COMPRESSION lz4, ALTER COLUMN text SET STORAGE MAIN,
        SET (toast_tuple_target = 1024);
EXCEPTION WHEN feature_not_supported THEN
    NULL;
END
$$;

-- Autovacuum settings for every table that has none, or none for dead rows (docs/decisions/0050).
ALTER TABLE teams SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE team_members SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE api_keys SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE directory_keys SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE domains SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE dkim_keys SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE directory_domains SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE domain_claims SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE suppressions SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE contents SET (autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_cost_limit = 1000,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_limit = 1000);
ALTER TABLE search_blocks SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE attachments SET (autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_cost_limit = 1000,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_limit = 1000);
ALTER TABLE timeline SET (autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05);
ALTER TABLE purges SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE rollup_purges SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE received_emails SET (autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05);
ALTER TABLE received_sources SET (autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_cost_limit = 1000,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_limit = 1000);
ALTER TABLE received_attachments SET (autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05);
ALTER TABLE paused SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE processes SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE mta_sts_policies SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE sites SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE destinations SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE idempotency_keys SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
ALTER TABLE captured SET (autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_cost_limit = 1000,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 1000,
    toast.autovacuum_vacuum_cost_limit = 1000);
ALTER TABLE clock_jumps SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE maintenance SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE usage_days SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE webhooks SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE webhook_events SET (autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05);
ALTER TABLE webhook_outcomes SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
ALTER TABLE webhook_attempts SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
ALTER TABLE key_ring_keys SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE blob_store SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE backups SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
ALTER TABLE restored SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
