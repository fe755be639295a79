"""The test databases: each test gets a migrated database of its own."""

from __future__ import annotations

import socket

import asyncpg
import pytest


async def test_a_fresh_database_has_the_schema(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    assert await conn.fetchval("SELECT count(*) FROM teams") == 0
    await conn.close()


async def test_rows_of_one_test_are_not_seen_by_another(database_url: str) -> None:
    conn = await asyncpg.connect(database_url)
    assert await conn.fetchval("SELECT count(*) FROM schema_migrations") > 0
    await conn.execute("DROP TABLE teams")
    await conn.close()


@pytest.mark.parametrize("address", ["192.0.2.1", "10.0.0.1", "0.0.0.0"])
def test_a_test_cannot_leave_the_machine(address: str) -> None:
    with socket.socket() as probe, pytest.raises(PermissionError):
        probe.connect((address, 9))
