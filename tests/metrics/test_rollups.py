"""Folding, thinning and rebuilding: no increment is lost or counted twice, whoever else is at work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from kit import oracle
from kit.clock import ManualClock
from kit.histories import History, Sender, generate, instant
from kit.mailroom import still
from kit.oracle import Asked
from kit.world import Team, World
from pillarbox.emails.reconcile import reconcile
from pillarbox.kernel.ids import Ids
from pillarbox.timeline import rebuilding, rollups
from pillarbox.timeline.rebuilding import Difference

NOW = instant("2026-11-21T10:07:33.123456")
START = NOW - timedelta(days=4)
SENDERS = (
    Sender(UUID(int=1), "harbor.example", None),
    Sender(UUID(int=2), "quay.example", UUID(int=5)),
    Sender(None, "sandbox.example", None),
)
ALL = Asked(START, NOW)


@asynccontextmanager
async def room(database_url: str, folder: Path) -> AsyncIterator[tuple[World, Team]]:
    async with still(database_url, folder, ManualClock(NOW)) as pillarbox:
        yield pillarbox, await pillarbox.team()


async def history(pillarbox: World, team: Team, seed: int, emails: int = 60) -> History:
    timeline = pillarbox.app.house.timeline
    return await generate(pillarbox.pool, timeline, team.id, [(START, NOW)], SENDERS, emails, seed, NOW)


async def totals(team: Team) -> dict[str, object]:
    answer = await team.http.get("/emails/metrics", params=ALL.params())
    return dict(answer.json()["totals"])


async def levels(pool: asyncpg.Pool) -> dict[int, int]:
    """How many recipients were accepted, by level of rollups."""
    rows = await pool.fetch("SELECT level, sum(received)::int FROM rollups GROUP BY 1 ORDER BY 1")
    return dict(map(tuple, rows))


async def test_writers_and_several_folders_at_once_lose_nothing(database_url: str, tmp_path: Path) -> None:
    """Design decision 11: each event is in the increments or in every level of the rollups, never in both."""
    async with room(database_url, tmp_path) as (pillarbox, team):
        writers = [asyncio.create_task(history(pillarbox, team, seed, 30)) for seed in range(4)]

        async def keep_folding() -> None:
            while not all(writer.done() for writer in writers):
                await rollups.fold(pillarbox.pool, NOW)

        await asyncio.gather(keep_folding(), keep_folding(), *writers)
        found = History(team.id, [], [event for writer in writers for event in writer.result().events])
        assert await totals(team) == oracle.totals(found, ALL)
        await rollups.fold(pillarbox.pool, NOW)
        assert await pillarbox.pool.fetchval("SELECT count(*) FROM metric_increments") == 0
        assert await totals(team) == oracle.totals(found, ALL)


@pytest.mark.parametrize("folded", [False, True])
async def test_a_folder_that_is_cut_off_changes_nothing(
    database_url: str, tmp_path: Path, *, folded: bool
) -> None:
    """Whatever it had done is undone with its transaction; the next one does it once."""
    async with room(database_url, tmp_path) as (pillarbox, team):
        found = await history(pillarbox, team, 1)
        conn = await asyncpg.connect(database_url)
        running = conn.transaction()
        await running.start()
        await rollups.lock(conn)
        if folded:
            assert await rollups.fold_some(conn, team.id, NOW) > 0
        pid = conn.get_server_pid()
        await pillarbox.pool.fetchval("SELECT pg_terminate_backend($1)", pid)
        conn.terminate()
        assert await levels(pillarbox.pool) == {}
        assert await totals(team) == oracle.totals(found, ALL)
        await rollups.fold(pillarbox.pool, NOW)
        assert await totals(team) == oracle.totals(found, ALL)


async def test_only_busy_and_recent_quarters_keep_their_fine_rollups(
    database_url: str, tmp_path: Path
) -> None:
    """Each level sums up to the same, but for the finest one, which is thinned out."""
    async with room(database_url, tmp_path) as (pillarbox, team):
        await history(pillarbox, team, 1)
        await rollups.fold(pillarbox.pool, START)
        full = await levels(pillarbox.pool)
        assert set(full) == {0, 1, 2, 3}
        assert await rollups.thin(pillarbox.pool, NOW) > 0
        thinned = await levels(pillarbox.pool)
        assert full | {0: thinned[0]} == thinned
        assert len({thinned[1], thinned[2], thinned[3]}) == 1
        oldest = await pillarbox.pool.fetchval("SELECT min(start) FROM rollups WHERE level = 0")
        assert oldest >= NOW - rollups.FINE_FOR - timedelta(minutes=15)
        assert await rollups.thin(pillarbox.pool, NOW) == 0


async def test_rollups_beyond_retention_go_and_those_of_broadcasts_stay(
    database_url: str, tmp_path: Path
) -> None:
    async with room(database_url, tmp_path) as (pillarbox, team):
        await history(pillarbox, team, 1)
        await rollups.fold(pillarbox.pool, NOW)
        limit = NOW - timedelta(days=2)
        assert await rollups.forget(pillarbox.pool, team.id, limit) > 0
        left = await pillarbox.pool.fetch("SELECT DISTINCT broadcast_id FROM rollups WHERE start < $1", limit)
        assert [row[0] for row in left] == [UUID(int=5)]


async def rebuilt(
    pillarbox: World, team: Team, *, mend: bool, since: datetime | None = None
) -> list[Difference]:
    ids = Ids(pillarbox.clock)
    return [
        lack async for lack in rebuilding.rebuild(pillarbox.pool, ids, team.id, NOW, mend=mend, since=since)
    ]


async def test_a_history_that_fits_has_no_differences(database_url: str, tmp_path: Path) -> None:
    async with room(database_url, tmp_path) as (pillarbox, team):
        await history(pillarbox, team, 1)
        assert await rebuilt(pillarbox, team, mend=False) == []
        await rollups.fold(pillarbox.pool, NOW)
        await history(pillarbox, team, 2)
        assert await rebuilt(pillarbox, team, mend=False) == []


async def test_what_differs_is_named_and_set_right_at_every_level(database_url: str, tmp_path: Path) -> None:
    """`metrics rebuild`: rows that are missing, too large, or of a domain that never sent."""
    async with room(database_url, tmp_path) as (pillarbox, team):
        found = await history(pillarbox, team, 1)
        await rollups.fold(pillarbox.pool, NOW)
        pool = pillarbox.pool
        await pool.execute(
            "UPDATE rollups SET delivered = delivered + 7 WHERE domain_name = 'harbor.example'"
        )
        await pool.execute("DELETE FROM rollups WHERE domain_name = 'quay.example'")
        seen = await rebuilt(pillarbox, team, mend=False)
        assert {lack.domain_name for lack in seen} == {"harbor.example", "quay.example"}
        assert seen == await rebuilt(pillarbox, team, mend=True)
        assert await rebuilt(pillarbox, team, mend=True) == []
        await rollups.fold(pillarbox.pool, NOW)
        assert await rebuilt(pillarbox, team, mend=False) == []
        whole = Asked(START.replace(minute=0, second=0, microsecond=0), NOW)
        answer = await team.http.get("/emails/metrics", params=whole.params())
        expected = oracle.totals(found, whole)
        assert {name: answer.json()["totals"][name] for name in ("received", "sent", "bounced")} == {
            name: expected[name] for name in ("received", "sent", "bounced")
        }


async def test_what_retention_let_go_is_no_gap(database_url: str, tmp_path: Path) -> None:
    """`verify` and `metrics rebuild` speak of the time whose rollups are kept."""
    async with room(database_url, tmp_path) as (pillarbox, team):
        await history(pillarbox, team, 1)
        await rollups.fold(pillarbox.pool, NOW)
        oldest = rollups.oldest_day(NOW, 2)
        assert await rollups.forget(pillarbox.pool, team.id, oldest) > 0
        await pillarbox.pool.execute("DELETE FROM rollups WHERE start < $1", oldest)
        gaps = (await reconcile(pillarbox.pool, 10)).gaps
        assert [gap for gap in gaps if gap.name == "metric_differs_from_history"] == []
        assert await rebuilt(pillarbox, team, mend=False, since=oldest) == []
