"""The doctor tells of backups that are no longer made, and of a restore that waits for the operator."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import asyncpg

from pillarbox.doctor.backups import LATE, age, put_aside
from pillarbox.doctor.checks import Level

NOW = datetime(2026, 11, 22, 15, 0, tzinfo=UTC)


async def test_backups_that_are_late_are_told(database_url: str) -> None:
    async with asyncpg.create_pool(database_url, min_size=1, max_size=1) as pool:
        assert (await age(pool, NOW)).level is Level.SKIPPED
        insert = "INSERT INTO backups VALUES ($1, '/target', $2, $2, 1)"
        await pool.execute(insert, "old", NOW - LATE - timedelta(minutes=1))
        late = await age(pool, NOW)
        assert (late.level, late.found) == (Level.WARNING, "the last is of 2026-11-20 14:59 UTC")
        await pool.execute(insert, "new", NOW - timedelta(hours=1))
        assert (await age(pool, NOW)).level is Level.OK
        await pool.execute(insert, "future", NOW + timedelta(days=900))
        ahead = await age(pool, NOW)
        assert ahead.level is Level.WARNING
        assert "of the future" in (ahead.step or "")


async def test_what_a_restore_has_put_aside_is_told(database_url: str) -> None:
    async with asyncpg.create_pool(database_url, min_size=1, max_size=1) as pool:
        assert (await put_aside(pool)).level is Level.OK
        await pool.execute(
            "INSERT INTO restored (backup, snapshot_at, restored_at) VALUES ('x', $1, $1)", NOW
        )
        told = await put_aside(pool)
        assert told.level is Level.WARNING
        assert "restored release" in (told.step or "")
