"""Migrations: forward only, one at a time, never changed after they were applied."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from pillarbox.kernel.postgres import migrations
from pillarbox.kernel.postgres.migrations import (
    LOCK,
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


async def run(url: str, *wanted: Migration) -> list[int]:
    conn = await asyncpg.connect(url)
    try:
        return await migrate(conn, list(wanted))
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


NEWER = Migration(3, "newer", "-- compatible since: 2\nALTER TABLE two ADD COLUMN name text")


async def test_a_newer_schema_that_goes_with_this_release_is_accepted(blank_url: str) -> None:
    """OPS-04: the nodes of an installation are upgraded one by one."""
    await run(blank_url, FIRST, SECOND)
    await run(blank_url, FIRST, SECOND, NEWER)
    assert await run(blank_url, FIRST, SECOND) == []
    with pytest.raises(MigrationError, match="schema version 3, but this release knows only version 1"):
        await run(blank_url, FIRST)


async def test_a_table_of_an_older_release_gets_the_column(blank_url: str) -> None:
    conn = await asyncpg.connect(blank_url)
    await conn.execute(
        "CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text, checksum text,"
        " applied_at timestamptz NOT NULL DEFAULT now())"
    )
    await conn.execute("INSERT INTO schema_migrations VALUES (1, 'first', $1)", FIRST.checksum)
    assert await migrate(conn, [FIRST, SECOND]) == [2]
    rows = await conn.fetch("SELECT version, compatible_since FROM schema_migrations ORDER BY 1")
    assert [tuple(row) for row in rows] == [(1, None), (2, 2)]
    await conn.close()


async def test_a_migration_waits_for_its_locks_a_few_seconds_at_a_time(
    blank_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for an exclusive lock stops everybody behind it: so not for long, and again later."""
    monkeypatch.setattr(migrations, "LOCK_SECONDS", 0.1)
    monkeypatch.setattr(migrations, "LOCK_PAUSE", 0.01)
    monkeypatch.setattr(migrations, "LOCK_TRIES", 3)
    await run(blank_url, FIRST, SECOND)
    holder = await asyncpg.connect(blank_url)
    held = holder.transaction()
    await held.start()
    await holder.execute("SELECT FROM two")
    with pytest.raises(MigrationError, match="0003_newer did not get its locks"):
        await run(blank_url, FIRST, SECOND, NEWER)
    await held.rollback()
    assert await run(blank_url, FIRST, SECOND, NEWER) == [3]
    await holder.close()


async def test_an_index_is_built_beside_writers_and_again_after_an_interruption(blank_url: str) -> None:
    index = Migration(
        3,
        "index",
        "DROP INDEX CONCURRENTLY IF EXISTS two_id; CREATE INDEX CONCURRENTLY two_id ON two (id)",
    )
    await run(blank_url, FIRST, SECOND)
    conn = await asyncpg.connect(blank_url)
    await conn.execute("CREATE INDEX two_id ON two (id)")
    assert await run(blank_url, FIRST, SECOND, index) == [3]
    assert await conn.fetchval("SELECT indisvalid FROM pg_index WHERE indexrelid = 'two_id'::regclass")
    await conn.close()


BESIDE = Migration(
    3,
    "beside",
    "DROP INDEX CONCURRENTLY IF EXISTS two_id;\n"
    "-- Beside the writers; a semicolon; in a comment ends nothing.\n"
    "CREATE INDEX CONCURRENTLY two_id ON two (id);",
)

VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'two_id'::regclass"


async def test_processes_that_wait_do_not_stand_in_the_way_of_an_index(blank_url: str) -> None:
    """An index that is built beside the writers waits for all statements that run, even those that wait."""
    async with asyncio.timeout(60):
        applied = await asyncio.gather(*(run(blank_url, FIRST, SECOND, BESIDE) for _ in range(6)))
    assert sorted(applied) == [[], [], [], [], [], [1, 2, 3]]
    conn = await asyncpg.connect(blank_url)
    assert await conn.fetchval(VALID)
    await conn.close()


async def test_who_holds_the_lock_of_migrations_is_said(blank_url: str, monkeypatch: Any) -> None:
    """An index may take hours, or the other server hangs: a start that waits in silence looks broken."""
    monkeypatch.setattr(migrations, "SAY_AFTER", 0.0)
    holder = await asyncpg.connect(blank_url, server_settings={"application_name": "other node"})
    await holder.execute("SELECT pg_advisory_lock($1)", LOCK)
    with capture_logs() as said:
        waiting = asyncio.create_task(run(blank_url, FIRST))
        async with asyncio.timeout(60):
            while not said:
                await asyncio.sleep(0.01)
        await holder.close()
        assert await waiting == [1]
    (line,) = said
    assert line["event"] == "schema.waiting"
    assert line["application"] == "other node"
    assert line["reason"] == "another server migrates the database"


async def test_an_index_that_an_interrupted_run_has_left_is_built_again(blank_url: str) -> None:
    await run(blank_url, FIRST, SECOND)
    conn = await asyncpg.connect(blank_url)
    await conn.execute("INSERT INTO two VALUES (2)")
    with pytest.raises(asyncpg.UniqueViolationError):
        await conn.execute("CREATE UNIQUE INDEX CONCURRENTLY two_id ON two (id)")
    assert not await conn.fetchval(VALID)
    assert await run(blank_url, FIRST, SECOND, BESIDE) == [3]
    assert await conn.fetchval(VALID)
    await conn.close()
