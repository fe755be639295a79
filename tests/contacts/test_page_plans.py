"""What a page of the audience reads does not grow with the audience, whatever plan the database keeps."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import asyncpg

from kit.query_plans import plan, rows_read
from pillarbox.contacts import list_queries, queries, segment_queries, topic_queries
from pillarbox.kernel.wire.paging import NEWEST, OLDEST

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
