"""What a search reads of the emails are the blocks that it names, however many emails the team has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from kit.query_plans import plan, rows_read
from pillarbox.emails.retention import first_id
from pillarbox.emails.search import queries
from pillarbox.emails.search.blocks import SearchBlocks
from pillarbox.emails.search.filters import NEWEST, OLDEST, EmailFilter
from pillarbox.emails.search.find import MOST_BLOCKS
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import TeamDb, open_pool

MANY = 20_000
BLOCK = 500
RARE = UUID(int=1)
FILL = """
    INSERT INTO emails (team_id, id, created_at, content_id, message_id, sender, to_list, subject,
                        domain_name, last_event, last_event_at, tags, source, key_id)
    SELECT $1, id, now(), id, format('<%s@harbor.example>', n), 'news@harbor.example', '[]', 'Berth',
           'harbor.example', 'delivered', now(),
           CASE WHEN n = 7777 THEN '[{"name":"kind","value":"rare"}]'::json END,
           CASE WHEN n = 7777 THEN 'smtp' END, CASE WHEN n = 7777 THEN $3::uuid END
      FROM (SELECT n, (lpad(to_hex(n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid AS id
              FROM generate_series(1, $2::integer) AS n) AS numbered
"""
RECIPIENTS = """
    INSERT INTO recipients (team_id, email_id, position, role, address, mailbox, grp, state)
    SELECT team_id, id, 0, 'to', 'ada@quay.example', 'ada@quay.example', 0, 'delivered' FROM emails
"""
ASKED: tuple[dict[str, Any], ...] = (
    {"tag": "kind:rare"},
    {"tag": "kind"},
    {"key_id": str(RARE)},
    {"source": "smtp"},
    {"message_id": "7777@harbor.example"},
    {"broadcast_id": str(RARE)},
    {"tag": "none"},
)


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
async def test_a_search_reads_few_blocks(database_url: str, mode: str) -> None:
    team = uuid4()
    pool = await open_pool(database_url, limit=2)
    conn = await asyncpg.connect(database_url)
    try:
        await conn.execute(
            "INSERT INTO teams (id, name, email, created_at) VALUES ($1, 'x', 'x@x.example', now())", team
        )
        await conn.execute(FILL, team, MANY, RARE)
        await conn.execute(RECIPIENTS)
        before = first_id(datetime.now(UTC) + timedelta(days=1))
        made = await SearchBlocks(pool, SystemClock(), BLOCK).describe(TeamDb(pool, team), OLDEST, before)
        assert made == MANY // BLOCK
        await conn.execute("VACUUM ANALYZE")
        await conn.execute(f"SET plan_cache_mode = {mode}")
        for asked in ASKED:
            wanted = EmailFilter.parsed(**asked)
            numbers = wanted.numbers
            read = max(
                rows_read(await plan(conn, queries.BLOCKS, (team, NEWEST, OLDEST, numbers, MOST_BLOCKS, 3)))
            )
            assert read <= MANY // BLOCK + 1, (asked, read)
            blocks, _ = await queries.blocks(pool, team, NEWEST, OLDEST, numbers, MOST_BLOCKS)
            assert len(blocks) <= 2, asked
            ranges = ["{" + ",".join(map(str, column)) + "}" for column in zip(*blocks, strict=True)]
            ranges = ranges or ["{}"] * 3
            by_email = (*ranges, None, None, None, None, 21, "{}", *wanted.origin)
            assert max(rows_read(await plan(conn, queries.BY_EMAIL, by_email))) <= 2 * BLOCK, asked
            by_recipient = (*ranges, "ada@quay.example", None, None, 21, *wanted.origin)
            assert max(rows_read(await plan(conn, queries.BY_RECIPIENT, by_recipient))) <= 2 * BLOCK, asked
        read = max(
            rows_read(await plan(conn, queries.WITH_ID, (team, blocks[0].last_id if blocks else RARE)))
        )
        assert read <= 1
    finally:
        await conn.close()
        await pool.close()
