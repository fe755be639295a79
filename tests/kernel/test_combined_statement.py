"""Several statements as one (kernel/together)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from uuid import UUID

import asyncpg
import pytest

from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.combined_statement import (
    ExpectedRowCount,
    RowCountMismatch,
    Statement,
    combined,
    execute_all,
    rows_json,
)

PUT = """
    INSERT INTO things (id, at, name, tags)
    SELECT k.* FROM json_to_recordset($1::text::json) AS k (id uuid, at timestamptz, name text, tags json)
"""
TABLES = """
    CREATE TEMP TABLE things (id uuid PRIMARY KEY, at timestamptz, name text, tags json);
    CREATE TEMP TABLE totals (name text, number integer)
"""
COUNT_UP = "UPDATE totals SET number = number + $2 WHERE name = $1"


@asynccontextmanager
async def tables(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    conn = await asyncpg.connect(database_url)
    try:
        await conn.execute(TABLES)
        await conn.execute("INSERT INTO totals VALUES ('all', 5)")
        yield conn
    finally:
        await conn.close()


async def test_each_statement_has_its_own_arguments(database_url: str) -> None:
    async with tables(database_url) as conn:
        rows = await combined(
            conn,
            [Statement(PUT, (rows_json([]),)), Statement(COUNT_UP, ("all", 3))],
            Statement("SELECT $1::text || $2::text AS said", ("a", "b")),
        )
        assert [row["said"] for row in rows] == ["ab"]
        assert await conn.fetchval("SELECT number FROM totals") == 8


async def test_values_arrive_as_they_are(database_url: str) -> None:
    """Ids made in C and by the standard library, instants to the microsecond, texts of any letters, NULL."""
    at = datetime(2026, 3, 29, 1, 59, 59, 123456, tzinfo=UTC)
    fast, plain = Ids(SystemClock()).new(), UUID(int=7)
    texts = ['"\\ \n\t\u2028', "äöü 𝄞 \x7f\x01"]
    rows = [
        {"id": fast, "at": at, "name": texts[0], "tags": [{"name": texts[1]}]},
        {"id": plain, "at": None, "name": texts[1]},
    ]
    async with tables(database_url) as conn:
        await combined(conn, [Statement(PUT, (rows_json(rows),))], Statement("SELECT 1", ()))
        found = {row["id"]: row for row in await conn.fetch("SELECT *, tags->0->>'name' AS tag FROM things")}
        assert (found[fast]["at"], found[fast]["name"], found[fast]["tag"]) == (at, *texts)
        assert (found[plain]["at"], found[plain]["name"], found[plain]["tags"]) == (None, texts[1], None)


async def test_all_or_nothing(database_url: str) -> None:
    row = {"id": UUID(int=1), "name": "twice"}
    async with tables(database_url) as conn:
        with pytest.raises(asyncpg.UniqueViolationError):
            await combined(
                conn,
                [Statement(COUNT_UP, ("all", 3)), Statement(PUT, (rows_json([row, row]),))],
                Statement("SELECT 1", ()),
            )
        assert await conn.fetchval("SELECT number FROM totals") == 5
        assert await conn.fetchval("SELECT count(*) FROM things") == 0


async def test_nothing_but_a_question(database_url: str) -> None:
    async with tables(database_url) as conn:
        assert await combined(conn, [], Statement("SELECT number FROM totals", ())) == [(5,)]


COUNT_AND_TELL = "UPDATE totals SET number = number + $2 WHERE name = $1 RETURNING name"


async def test_outright_all_of_it(database_url: str) -> None:
    async with tables(database_url) as conn:
        row = {"id": UUID(int=1), "name": "once"}
        await execute_all(
            conn,
            [
                ExpectedRowCount(COUNT_AND_TELL, ("all", 1), 1),
                ExpectedRowCount(PUT, (rows_json([row]),)),
                ExpectedRowCount("SELECT FROM totals WHERE name = $1", ("none",), 0),
            ],
        )
        assert await conn.fetchval("SELECT number FROM totals") == 6
        assert await conn.fetchval("SELECT name FROM things") == "once"


@pytest.mark.parametrize(
    ("name", "rows", "others"), [("missing", 1, 0), ("all", 0, 0), ("all", 2, 0), ("all", 1, 1)]
)
async def test_outright_nothing_where_a_number_is_another(
    database_url: str, name: str, rows: int, others: int
) -> None:
    async with tables(database_url) as conn:
        row = {"id": UUID(int=1), "name": "never"}
        with pytest.raises(RowCountMismatch):
            await execute_all(
                conn,
                [
                    ExpectedRowCount(PUT, (rows_json([row]),)),
                    ExpectedRowCount(COUNT_AND_TELL, (name, 1), rows),
                    ExpectedRowCount("SELECT FROM totals WHERE name = $1", ("none",), others),
                ],
            )
        assert await conn.fetchval("SELECT number FROM totals") == 5
        assert await conn.fetchval("SELECT count(*) FROM things") == 0
