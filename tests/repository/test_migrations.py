"""Migrations: forward only, one at a time, never changed after they were applied."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from pillarbox.kernel.postgres.migrations import (
    Migration,
    MigrationError,
    migrate,
    migrate_url,
    migrations_in,
    refuse_unmigrated_url,
)

FIRST = Migration(1, "first", "CREATE TABLE one (id integer)")
SECOND = Migration(2, "second", "CREATE TABLE two (id integer); INSERT INTO two VALUES (2)")
BROKEN = Migration(3, "broken", "CREATE TABLE three (id integer); SELECT 1 / 0")


@pytest.fixture
def blank_url(databases) -> Iterator[str]:  # type: ignore[no-untyped-def]
    url = databases.fresh(template="template0")
    yield url
    databases.drop(url)


async def run(url: str, *migrations: Migration) -> list[int]:
    conn = await asyncpg.connect(url)
    try:
        return await migrate(conn, list(migrations))
    finally:
        await conn.close()


async def test_only_what_is_missing_is_applied(blank_url: str) -> None:
    assert await run(blank_url, FIRST) == [1]
    assert await run(blank_url, FIRST, SECOND) == [2]
    assert await run(blank_url, FIRST, SECOND) == []


async def test_many_processes_migrate_once(blank_url: str) -> None:
    """OPS-04."""
    applied = await asyncio.gather(*(run(blank_url, FIRST, SECOND) for _ in range(6)))
    assert sorted(applied) == [[], [], [], [], [], [1, 2]]


async def test_a_newer_schema_is_refused(blank_url: str) -> None:
    """OPS-04."""
    await run(blank_url, FIRST, SECOND)
    with pytest.raises(MigrationError, match="schema version 2, but this release knows only version 1"):
        await run(blank_url, FIRST)


async def test_a_changed_migration_is_refused(blank_url: str) -> None:
    await run(blank_url, FIRST)
    with pytest.raises(MigrationError, match="0001_first was changed after it was applied"):
        await run(blank_url, Migration(1, "first", FIRST.sql + " "))


async def test_a_failed_migration_leaves_nothing(blank_url: str) -> None:
    with pytest.raises(MigrationError, match="0003_broken failed: division by zero"):
        await run(blank_url, FIRST, SECOND, BROKEN)
    conn = await asyncpg.connect(blank_url)
    assert await conn.fetchval("SELECT to_regclass('three')") is None
    assert await conn.fetchval("SELECT max(version) FROM schema_migrations") == 2
    assert await conn.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0
    await conn.close()


async def test_a_command_refuses_a_schema_of_another_release(blank_url: str, database_url: str) -> None:
    with pytest.raises(MigrationError, match="no schema yet"):
        await refuse_unmigrated_url(blank_url)
    await migrate_url(blank_url)
    await refuse_unmigrated_url(blank_url)


@pytest.mark.parametrize(
    "names", [["0002_two.sql"], ["0001_a.sql", "0001_b.sql"], ["1_a.sql"], ["0001-a.sql"]]
)
def test_numbers_have_no_gaps(names: list[str], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).write_text("SELECT 1")
    with pytest.raises(MigrationError):
        migrations_in(tmp_path)
