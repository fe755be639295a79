-- EXPERIMENTAL: distributes the tables of a Pillarbox database over the servers of a Citus cluster.
-- Never run by Pillarbox itself, and never tested on a cluster: docs/decisions/0052 says what runs there and what
-- does not. Run it once, by hand, on the coordinator, while no Pillarbox runs and all tables have the newest
-- schema; then start every node with `--database-shards 32`:
--
--     psql --single-transaction --set ON_ERROR_STOP=1 --file distribute.sql "$DATABASE_URL"
--
-- Every process connects to the coordinator. Tables that are not named here stay there as they are: `processes`,
-- `clock_jumps`, `maintenance`, `mta_sts_policies`, `sites`, `key_ring_keys`, `blob_store`, `backups`, `examinations`,
-- `restored`, `link_keys`, `rate_nodes`, `rate_windows`, those of people's sessions, passkeys, codes, links and addresses, and
-- `oauth_keys`, `oauth_requests`, `oauth_documents` and `oauth_logos` are small, and nothing is joined with them.

-- `--database-shards` must be the same number.
SET citus.shard_count = 32;
SET citus.shard_replication_factor = 1;
-- All tables in one transaction need one connection for each server.
SET citus.multi_shard_modify_mode = 'sequential';

-- Which team a key, a name or an address means, and what the operator has paused: small, read together with rows
-- of any team, the same on every server. Citus takes an identity only as bigint.
ALTER TABLE teams ALTER COLUMN number TYPE bigint;
SELECT create_reference_table('teams');
SELECT create_reference_table('directory_keys');
SELECT create_reference_table('directory_domains');
SELECT create_reference_table('directory_inboxes');
SELECT create_reference_table('paused');
SELECT create_reference_table('people');
SELECT create_reference_table('oauth_clients');
SELECT create_reference_table('oauth_codes');
SELECT create_reference_table('oauth_refresh_tokens');

-- The versions of days are written by triggers, and a trigger of a shard may not write to a distributed table.
-- `--database-shards` switches off what relies on them: answers about metrics that are remembered.
DROP TRIGGER rollups_inserted ON rollups;
DROP TRIGGER rollups_updated ON rollups;
DROP TRIGGER rollups_deleted ON rollups;
DROP TRIGGER rollups_truncated ON rollups;
-- Without this one a program that may write may also change audit entries.
DROP TRIGGER audit_entry_stays ON audit_entries;

-- Statements call it on the server of their shard.
SELECT create_distributed_function('fail_statement(text)');

-- What belongs to a team lies in one shard group.
SELECT create_distributed_table('emails', 'team_id', colocate_with => 'none');
SELECT create_distributed_table('team_members', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('api_keys', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('team_invitations', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('audit_entries', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('oauth_grants', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('domains', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('dkim_keys', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('domain_claims', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('suppressions', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('contents', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('attachments', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('recipients', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('timeline', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('metric_increments', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('rollups', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('rollup_versions', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('metric_pieces', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('provider_days', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('purges', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('rollup_purges', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('received_emails', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('received_sources', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('received_attachments', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('received_seen', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('deliveries', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('jobs', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('destinations', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('idempotency_keys', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('sealed_mails', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('captured', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('logs', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('usage_days', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('webhooks', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('webhook_events', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('webhook_deliveries', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('webhook_outcomes', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('webhook_attempts', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('search_blocks', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('erasures', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('contacts', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('contact_properties', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('segments', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('segment_members', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('topics', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('topic_choices', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('contact_engagement', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('contact_events', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('contact_bulk_acts', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('contact_imports', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('contact_terms', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('contact_import_errors', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('forms', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('form_sign_ups', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('templates', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('images', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('link_checks', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('template_versions', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('broadcasts', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('broadcast_recipients', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('broadcast_plans', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('broadcast_variants', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('automations', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('automation_versions', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('automation_triggers', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('automation_runs', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('automation_steps', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('automation_work', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inboxes', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_agents', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_policies', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_labels', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_threads', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_thread_labels', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_messages', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('message_trust', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_correspondents', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_search_blocks', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_search_rows', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_awaited_messages', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_search_late', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_search_due', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_drafts', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('inbox_draft_attachments', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('event_definitions', 'team_id', colocate_with => 'emails');
SELECT create_distributed_table('events', 'team_id', colocate_with => 'emails');
