"""The schema keeps teams apart (architecture 2.2; TEN-01), and its secrets are sealed (DKIM-05)."""

from __future__ import annotations

import asyncpg
import pytest

from kit.world import World
from pillarbox.domains.senders import Senders
from pillarbox.kernel.security.secrets import KeyRing, SealBroken

GLOBAL = {
    "teams": "who exists",
    "directory_keys": "which team a key means",
    "directory_domains": "which teams hold a name",
    "directory_inboxes": "which inbox an address means",
    "processes": "who may hold leases",
    "sites": "what other people's servers complained of",
    "rate_nodes": "which servers share limits",
    "mta_sts_policies": "what other domains ask of senders",
    "clock_jumps": "when the clocks of machines were set",
    "contact_terms_progress": "up to when the terms of all contacts are kept",
    "engagement_progress": "up to when the history of all teams is in the engagement of contacts",
    "provider_progress": "up to when the history of all teams is counted",
    "examinations": "the last run of doctor and verify, of the whole installation",
    "backups": "which backups of the whole installation were made",
    "restored": "the whole installation was restored or not",
    "maintenance": "the whole installation is in it or not",
    "key_ring_keys": "which keys the secrets of the whole installation need",
    "blob_store": "which blob store the whole installation uses",
    "link_keys": "a link in a mail arrives without a team",
    "schema_migrations": "the migrator's own",
    "people": "somebody belongs to several teams",
    "person_sessions": "a cookie arrives without a team",
    "person_passkeys": "whoever logs in has no team yet",
    "person_challenges": "whoever logs in has no team yet",
    "person_recovery_codes": "whoever logs in has no team yet",
    "person_links": "a link in a mail arrives without a team",
    "person_openid_links": "whoever logs in has no team yet",
    "person_openid_states": "whoever logs in has no team yet",
    "person_address_changes": "somebody belongs to several teams",
    "oauth_keys": "the whole installation signs with them",
    "oauth_clients": "a program registers without a team",
    "oauth_requests": "the team is chosen with the consent",
    "oauth_documents": "what other hosts say of programs",
    "oauth_logos": "what other hosts show of programs",
    "oauth_codes": "which grant a code means",
    "oauth_refresh_tokens": "which grant a token means",
}
"""Tables that no team owns, and why."""

KEYS = """
    SELECT t.relname AS name, i.indisprimary AS is_primary, i.indisunique AS is_unique, a.attname AS first
      FROM pg_class t
      JOIN pg_index i ON i.indrelid = t.oid
      JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0]
     WHERE t.relkind = 'r' AND t.relnamespace = 'public'::regnamespace AND i.indisunique
"""

FOREIGN = """
    SELECT c.conrelid::regclass::text AS name, a.attname AS first
      FROM pg_constraint c
      JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
     WHERE c.contype = 'f'
"""

TABLES = """
    SELECT t.relname AS name,
           EXISTS (SELECT FROM pg_attribute a
                    WHERE a.attrelid = t.oid AND a.attname = 'team_id' AND a.attnotnull) AS has_team
      FROM pg_class t
     WHERE t.relkind = 'r' AND t.relnamespace = 'public'::regnamespace
"""


async def test_every_key_of_a_tenant_table_starts_with_the_team(database_url: str) -> None:
    """TEN-01: no row can point into another team, and the schema can be distributed by team."""
    conn = await asyncpg.connect(database_url)
    try:
        tables = {row["name"]: row["has_team"] for row in await conn.fetch(TABLES)}
        keys = await conn.fetch(KEYS)
        foreign = await conn.fetch(FOREIGN)
    finally:
        await conn.close()
    tenant = {name for name in tables if name not in GLOBAL}
    assert {"emails", "recipients", "timeline", "deliveries", "domains", "api_keys"} <= tenant
    assert [name for name in tenant if not tables[name]] == []
    assert [
        (row["name"], row["first"]) for row in keys if row["name"] in tenant and row["first"] != "team_id"
    ] == []
    assert [(row["name"], row["first"]) for row in foreign if row["first"] != "team_id"] == []


async def test_the_private_key_of_a_domain_is_sealed_for_its_own_row(running: World) -> None:
    """DKIM-05, SEC-04: unreadable in the database, absent from every answer, useless in another row."""
    team = await running.team()
    domain = await team.domain()
    row = await team.db.source.fetchrow("SELECT * FROM dkim_keys WHERE team_id = $1", team.id)
    ring = running.app.need(KeyRing)
    sender = await running.app.need(Senders).find(team.id, "harbor.example")
    assert sender is not None
    plain = ring.open(sender.signing.sealed, sender.signing.context)
    assert plain not in bytes(row["private_key"])
    shown = (await team.get(f"/domains/{domain}")).text
    assert "private" not in shown
    assert row["public_key"] in shown
    with pytest.raises(SealBroken):
        ring.open(bytes(row["private_key"]), b"dkim_keys" + bytes(16))
