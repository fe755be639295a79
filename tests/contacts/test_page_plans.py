"""What a page of the audience reads does not grow with the audience, whatever plan the database keeps."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import asyncpg

from kit.query_plans import plan, rows_read
from pillarbox.contacts import list_queries, overview_queries, queries, segment_queries, topic_queries
from pillarbox.forms import sign_up_queries
from pillarbox.kernel.wire.paging import NEWEST, OLDEST
from pillarbox.receiving import queries as receiving_queries

MANY = 20_000
MOST = 101

FILL = """
    INSERT INTO contacts (team_id, id, address, unsubscribed, created_at, updated_at)
    SELECT $1, (lpad(to_hex(n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
           'p' || n || '@x.example', false, now(), now()
      FROM generate_series(1, $2::integer) AS n
"""
JOIN = "INSERT INTO segment_members SELECT team_id, $1, id, now() FROM contacts"


async def test_a_page_reads_a_page(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    team, segment = uuid4(), uuid4()
    await conn.execute(FILL, team, MANY)
    await conn.execute("INSERT INTO segments VALUES ($1, $2, 'x', now())", team, segment)
    await conn.execute(JOIN, segment)
    await conn.execute("VACUUM ANALYZE")
    contact, middle = await conn.fetchval("SELECT id FROM contacts OFFSET 7 LIMIT 1"), middle_of(MANY)
    asked: dict[str, tuple[str, tuple[Any, ...]]] = {
        "a page": (list_queries.PAGE, (middle, None, MOST)),
        "the first page": (list_queries.PAGE, (NEWEST, None, MOST)),
        "a page before": (list_queries.PAGE, (None, middle, MOST)),
        "a page of members": (list_queries.MEMBERS, (middle, None, MOST, segment)),
        "a page of members before": (list_queries.MEMBERS, (None, middle, MOST, segment)),
        "a block": (list_queries.ENCODED, (middle, OLDEST, MOST)),
        "a block of members": (list_queries.ENCODED_MEMBERS, (middle, OLDEST, MOST, segment)),
        "exported": (list_queries.FOLLOWING, (middle, MOST)),
        "exported members": (list_queries.FOLLOWING_MEMBERS, (middle, MOST, segment)),
        "values": (queries.REMOVE_VALUES, (middle, ["1"], MOST)),
        "one": (queries.FOUND, (contact,)),
        "an address": (queries.ID_OF, ("p77@x.example",)),
        "segments": (segment_queries.PAGE, (NEWEST, None, MOST, contact)),
        "topics": (topic_queries.PAGE, (NEWEST, None, MOST, contact)),
    }
    try:
        for mode in ("force_custom_plan", "force_generic_plan"):
            await conn.execute(f"SET plan_cache_mode = {mode}")
            for name, (sql, args) in asked.items():
                read = max(rows_read(await plan(conn, sql, (team, *args))))
                assert read <= 2 * MOST, (mode, name, read)
    finally:
        await conn.close()


def middle_of(many: int) -> UUID:
    return UUID(f"{many // 2:012x}70008000{many // 2:012x}")


HISTORY = """
    INSERT INTO contact_events (team_id, name, contact_id, first_at, last_at, occurrences)
    SELECT $1, n % 40, (SELECT id FROM contacts OFFSET n / 40 LIMIT 1), now(), now(), 1
      FROM generate_series(1, 4000) AS n
        ON CONFLICT DO NOTHING
"""
SIGN_UPS = """
    INSERT INTO form_sign_ups (team_id, id, form_id, address, email, digest, content, consent_text, client,
                               network, requested_at, expires_at)
    SELECT $1, gen_random_uuid(), $1, 'p' || n / 40 || '@x.example', '', '', '{}', '', '', '', now(), now()
      FROM generate_series(1, 20000) AS n
"""
RECEIVED = """
    INSERT INTO received_emails (team_id, id, created_at, sender, to_list, subject, message_id, received_for,
                                 attachments, recipients, mail_from, client, spf, dkim, dmarc, size, complete)
    SELECT $1, gen_random_uuid(), now(), CASE n % 2 WHEN 1 THEN 'P p <P' || n % 400 || '@x.example>'
                                                   ELSE 'p' || n % 400 || '@x.example' END,
           '[]', 's', n, '[]', 0, '[]', '', '', '', '', '', 0, true
      FROM generate_series(1, 20000) AS n
"""


async def test_a_page_of_a_history_reads_a_page(database_url: str) -> None:
    """Events, sign-ups and received mail of one contact are found by their indexes."""
    conn = await asyncpg.connect(database_url)
    team = uuid4()
    await conn.execute(FILL, team, 500)
    for filled in (HISTORY, SIGN_UPS, RECEIVED):
        await conn.execute(filled, team)
    await conn.execute("VACUUM ANALYZE")
    contact, last = await conn.fetchval("SELECT contact_id FROM contact_events LIMIT 1"), UUID(int=2**128 - 1)
    asked: dict[str, tuple[str, tuple[Any, ...]]] = {
        "what it is": (overview_queries.MOMENTS, (contact,)),
        "events": (overview_queries.EVENTS, (contact, "9999-01-01", last, 26)),
        "sign-ups": (sign_up_queries.OF_ADDRESS_BEFORE, ("p77@x.example", "9999-01-01", last, 26)),
        "mail from": (receiving_queries.FROM_ADDRESS, ("p77@x.example", last, 26)),
        "mail from a name": (receiving_queries.FROM_ADDRESS, ("p78@x.example", last, 26)),
    }
    try:
        for mode in ("force_custom_plan", "force_generic_plan"):
            await conn.execute(f"SET plan_cache_mode = {mode}")
            for name, (sql, args) in asked.items():
                found = await plan(conn, sql, (team, *args))
                assert max(rows_read(found)) <= MOST, (mode, name)
                assert found["Actual Rows"] >= (26 if name != "what it is" else 1), (mode, name)
    finally:
        await conn.close()
