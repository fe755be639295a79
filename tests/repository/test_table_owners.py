"""Each table has one slice that writes it (docs/architecture.md 3); other writers are listed, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kit.statements import SqlText, all_statements

WRITE = re.compile(
    r"(?<!FOR )(?<!KEY )(?<!DO )\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO|TRUNCATE)"
    r"\s+(?:ONLY\s+)?([a-z_]+)\b"
)
NO_TABLES = {"of", "set", "skip"}

OWNERS = {
    "api_keys": {"api_keys"},
    "automations": {
        "automation_runs",
        "automation_steps",
        "automation_triggers",
        "automation_versions",
        "automation_work",
        "automations",
    },
    "backup": {"backups", "restored"},
    "broadcasts": {"broadcast_plans", "broadcast_recipients", "broadcast_variants", "broadcasts"},
    "capture": {"captured"},
    "contact_properties": {"contact_properties"},
    "contacts": {
        "contact_bulk_acts",
        "contact_engagement",
        "contact_events",
        "contact_import_errors",
        "contact_imports",
        "contact_terms",
        "contact_terms_progress",
        "contacts",
        "engagement_progress",
        "segment_members",
        "topic_choices",
    },
    "delivery": {"deliveries", "destinations", "mta_sts_policies", "paused", "sites"},
    "doctor": {"examinations"},
    "directory": {"directory_domains", "directory_inboxes", "directory_keys"},
    "documents": {"images", "link_checks"},
    "domains": {"dkim_keys", "domain_claims", "domains"},
    "emails": {
        "attachments",
        "contents",
        "emails",
        "listed_blobs",
        "purges",
        "sealed_mails",
        "search_blocks",
    },
    "events": {"event_definitions", "events"},
    "forms": {"form_sign_ups", "forms"},
    "inboxes": {
        "inbox_agents",
        "inbox_awaited_messages",
        "inbox_correspondents",
        "inbox_draft_attachments",
        "inbox_drafts",
        "inbox_labels",
        "inbox_messages",
        "inbox_policies",
        "inbox_search_blocks",
        "inbox_search_due",
        "inbox_search_late",
        "inbox_search_rows",
        "inbox_thread_labels",
        "inbox_threads",
        "inboxes",
        "message_trust",
    },
    "kernel": {
        "blob_store",
        "clock_jumps",
        "idempotency_keys",
        "jobs",
        "key_ring_keys",
        "link_keys",
        "maintenance",
        "processes",
        "rate_nodes",
        "rate_windows",
        "schema_migrations",
    },
    "logs": {"logs"},
    "metrics": {"metric_pieces", "provider_days", "provider_progress"},
    "oauth": {
        "oauth_clients",
        "oauth_codes",
        "oauth_documents",
        "oauth_grants",
        "oauth_keys",
        "oauth_logos",
        "oauth_refresh_tokens",
        "oauth_requests",
    },
    "people": {
        "audit_entries",
        "people",
        "person_address_changes",
        "person_challenges",
        "person_links",
        "person_openid_links",
        "person_openid_states",
        "person_passkeys",
        "person_recovery_codes",
        "person_sessions",
        "team_invitations",
        "team_members",
    },
    "personal_data": {"erasures"},
    "receiving": {"received_attachments", "received_emails", "received_seen", "received_sources"},
    "segments": {"segments"},
    "suppressions": {"suppressions"},
    "teams": {"teams"},
    "templates": {"template_versions", "templates"},
    "timeline": {"metric_increments", "recipients", "rollup_purges", "rollups", "timeline"},
    "topics": {"topics"},
    "usage": {"usage_days"},
    "webhooks": {"webhook_attempts", "webhook_deliveries", "webhook_events", "webhook_outcomes", "webhooks"},
}
"""The tables that each slice writes."""

OTHERS = {
    ("deliveries", "backup"): "puts aside what was open, after a restore",
    ("deliveries", "emails"): "adds work in the statement that stores an email",
    ("emails", "timeline"): "the columns of what became of an email",
    ("idempotency_keys", "emails"): "the key of an email is taken in the commit of the email",
    ("import_rows", "contacts"): "a temporary table of its transaction",
    ("jobs", "backup"): "puts aside what was open, after a restore",
    ("jobs", "broadcasts"): "lets the jobs of broadcasts go on after a restore",
    ("jobs", "delivery"): "`pillarbox queue retry` makes fetches due",
    ("people", "demo"): "removes the demo's account, which no team has any more",
    ("person_address_changes", "demo"): "removes the demo's account, which no team has any more",
    ("person_challenges", "demo"): "removes the demo's account, which no team has any more",
    ("person_links", "demo"): "removes the demo's account, which no team has any more",
    ("person_openid_links", "demo"): "removes the demo's account, which no team has any more",
    ("person_passkeys", "demo"): "removes the demo's account, which no team has any more",
    ("person_recovery_codes", "demo"): "removes the demo's account, which no team has any more",
    ("person_sessions", "demo"): "removes the demo's account, which no team has any more",
    ("processes", "backup"): "puts aside what was open, after a restore",
    ("received_emails", "usage"): "the column `above`: what lies above a quota",
    ("recipients", "emails"): "adds recipients with their email, and removes them with it",
    ("schema_migrations", "backup"): "a restored schema has the migrations of the backup",
    ("segment_members", "segments"): "removes the members of a segment that is gone",
    ("team_members", "teams"): "the first member of a new team",
    ("teams", "demo"): "removes the demo's team",
    ("teams", "documents"): "the column `mail_theme`",
    ("teams", "people"): "the column `name`",
    ("teams", "unsubscribe"): "the column `unsubscribe_page`",
    ("timeline", "emails"): "the first line of a history, in the statement that stores an email",
    ("topic_choices", "topics"): "removes the choices of a topic that is gone",
    ("usage_days", "receiving"): "counts in the statement that stores mail",
    ("webhook_deliveries", "backup"): "puts aside what was open, after a restore",
    ("webhook_deliveries", "receiving"): "queues events in the statement that stores mail",
    ("webhook_outcomes", "backup"): "puts aside what was open, after a restore",
}
"""Slices that write some rows or columns of a table of another one, and what."""


def writes(statements: Iterable[SqlText]) -> set[tuple[str, str]]:
    """The tables that are written, each with the slice that does."""
    return {
        (table, statement.module.partition("/")[0])
        for statement in statements
        for table in WRITE.findall(statement.sql)
        if table not in NO_TABLES
    }


def test_each_table_is_written_by_its_slice() -> None:
    owned = {(table, slice_) for slice_, tables in OWNERS.items() for table in tables}
    assert writes(all_statements()) == owned | OTHERS.keys(), (
        "call a function of the slice that owns the table, or say in OTHERS what another one writes"
    )


def test_a_table_has_one_owner() -> None:
    tables = [table for tables in OWNERS.values() for table in tables]
    assert len(tables) == len(set(tables))


def test_writes_are_found() -> None:
    sql = "WITH a AS (DELETE FROM emails) INSERT INTO jobs SELECT $1 ON CONFLICT DO UPDATE SET b = 1"
    assert writes([SqlText("logs/queries.py", "F", sql)]) == {("emails", "logs"), ("jobs", "logs")}
    assert writes([SqlText("m/q.py", "F", "SELECT id FROM emails FOR NO KEY UPDATE SKIP LOCKED")]) == set()
    assert writes([SqlText("m/q.py", "F", "UPDATE ONLY teams SET name = $1")]) == {("teams", "m")}
