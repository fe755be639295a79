"""The test house itself: each test gets a migrated database of its own."""

from __future__ import annotations

import asyncpg


async def test_a_fresh_database_has_the_schema(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    assert await conn.fetchval("SELECT count(*) FROM teams") == 0
    await conn.close()


async def test_rows_of_one_test_are_not_seen_by_another(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    assert await conn.fetchval("SELECT count(*) FROM schema_migrations") > 0
    await conn.execute("DROP TABLE teams")
    await conn.close()
