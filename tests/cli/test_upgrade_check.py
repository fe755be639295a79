"""`pillarbox upgrade --check`: what this release would do, said before it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from cli.conftest import Installation
from pillarbox.cli.backups.upgrade import examined
from pillarbox.kernel.postgres.migrations import Migration, migrate, migrations_in

PREVIOUS = 16
NOW = datetime(2026, 11, 22, 15, 0, tzinfo=UTC)


@pytest.fixture
def older(databases: Any, tmp_path: Path) -> Iterator[Installation]:
    """An installation of the release before backups."""
    url = databases.fresh(template="template0")

    async def migrated() -> None:
        conn = await asyncpg.connect(url)
        await migrate(conn, migrations_in()[:PREVIOUS])
        await conn.close()

    asyncio.run(migrated())
    yield Installation(url, tmp_path / "data")
    databases.drop(url)


def test_a_database_of_this_release_has_nothing_to_do(empty: Installation) -> None:
    found = empty.json("upgrade", "--check")
    assert found["ready"] is True
    assert found["pending"] == []
    assert "Nothing is to be done." in empty.run("upgrade", "--check").output


def test_pending_migrations_are_named_with_what_they_lock(older: Installation) -> None:
    older.folder.mkdir()
    found = older.json("upgrade", "--check")
    assert found["ready"] is True
    assert found["schema_version"] == PREVIOUS
    assert [one["version"] for one in found["pending"]] == list(range(PREVIOUS + 1, len(migrations_in()) + 1))
    assert {"deliveries", "jobs", "webhook_deliveries"} <= {table["table"] for table in found["tables"]}
    assert any("no backup" in note for note in found["notes"])
    assert older.sql("SELECT max(version) FROM schema_migrations")[0][0] == PREVIOUS
    shown = older.run("upgrade", "--check").output
    assert "0018_backups" in shown
    assert "Ready: start the new release, node by node." in shown


def test_a_newer_schema_is_in_the_way(empty: Installation) -> None:
    newer = len(migrations_in()) + 1
    empty.sql("INSERT INTO schema_migrations VALUES ($1, 'newer', 'x', now(), $1)", newer)
    found = empty.json("upgrade", "--check", status=1)
    assert "start the newer release" in found["reasons"][0]
    empty.sql("UPDATE schema_migrations SET compatible_since = $1 WHERE version = $2", newer - 1, newer)
    found = empty.json("upgrade", "--check")
    assert found["ready"] is True
    assert "A newer release has upgraded the database" in found["notes"][0]


def test_without_check_it_does_nothing(empty: Installation) -> None:
    assert empty.run("upgrade").exit_code == 2


async def reasons(url: str, sql: str) -> tuple[list[str], list[str]]:
    """What is said about one more migration."""
    known = migrations_in()
    conn = await asyncpg.connect(url)
    try:
        review = await examined(conn, None, NOW, [*known, Migration(len(known) + 1, "next", sql)])
    finally:
        await conn.close()
    return review.reasons, review.advice


async def test_a_migration_that_stops_somebody_is_in_the_way(database_url: str) -> None:
    since = f"-- compatible since: {len(migrations_in())}\n"
    found, _ = await reasons(database_url, since + "ALTER TABLE emails ALTER subject TYPE varchar(10)")
    assert any("writes the table anew" in reason for reason in found)
    found, _ = await reasons(database_url, "ALTER TABLE emails ADD COLUMN more text")
    assert found == [
        f"The migration {len(migrations_in()) + 1:04}_next does not go with the release that runs now: "
        "stop all nodes first."
    ]
    excused = since + "-- accepted lock: it is empty so far\nCREATE INDEX x ON timeline (kind)"
    found, advice = await reasons(database_url, excused)
    assert found == []
    assert any("it is empty so far" in note for note in advice)


async def test_an_old_backup_is_in_the_way(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    await conn.execute(
        "INSERT INTO backups VALUES ('a', '/target', $1, $1, 1)", datetime(2026, 11, 19, tzinfo=UTC)
    )
    await conn.close()
    since = f"-- compatible since: {len(migrations_in())}\n"
    found, _ = await reasons(database_url, since + "ALTER TABLE emails ADD COLUMN more text")
    assert found == ["The last backup is 3 d 15 h old; make one with `pillarbox backup TARGET`."]
