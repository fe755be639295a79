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
from kit.brought import INVARIANTS
from kit.clock import ManualClock
from kit.histories import History, Sender, generate, instant
from kit.manual_world import manual_world
from kit.oracle import Asked
from kit.world import Team, World
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.kernel.ids import Ids, first_id
from pillarbox.timeline import levels, rebuilding, rollup_queries, rollups
from pillarbox.timeline.rebuilding_queries import Difference
from pillarbox.timeline.record import Timeline

NOW = instant("2026-11-21T10:07:33.123456")
START = NOW - timedelta(days=4)
SENDERS = (
    Sender(UUID(int=1), "harbor.example", None),
    Sender(UUID(int=2), "quay.example", UUID(int=5)),
    Sender(None, "sandbox.example", None),
)
ALL = Asked(START, NOW)


@asynccontextmanager
async def counted_team(database_url: str, folder: Path) -> AsyncIterator[tuple[World, Team]]:
    async with manual_world(database_url, folder, ManualClock(NOW)) as pillarbox:
        yield pillarbox, await pillarbox.team()


async def history(pillarbox: World, team: Team, seed: int, emails: int = 60) -> History:
    timeline = pillarbox.app.need(Timeline)
    return await generate(pillarbox.pool, timeline, team.id, [(START, NOW)], SENDERS, emails, seed, NOW)


async def totals(team: Team) -> dict[str, object]:
    answer = await team.http.get("/emails/metrics", params=ALL.params())
    return dict(answer.json()["totals"])


async def level_sums(pool: asyncpg.Pool) -> dict[int, int]:
    """How many recipients were accepted, by level of rollups."""
    rows = await pool.fetch("SELECT level, sum(received)::int FROM rollups GROUP BY 1 ORDER BY 1")
    return dict(map(tuple, rows))


async def test_writers_and_several_folders_at_once_lose_nothing(database_url: str, tmp_path: Path) -> None:
    """Architecture 2.11: each event is in the increments or in every level of the rollups, never in both."""
    async with counted_team(database_url, tmp_path) as (pillarbox, team):
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
    async with counted_team(database_url, tmp_path) as (pillarbox, team):
        found = await history(pillarbox, team, 1)
        conn = await asyncpg.connect(database_url)
        running = conn.transaction()
        await running.start()
        await rollup_queries.lock(conn)
        if folded:
            assert await rollups.fold_some(conn, team.id, NOW) > 0
        pid = conn.get_server_pid()
        await pillarbox.pool.fetchval("SELECT pg_terminate_backend($1)", pid)
        conn.terminate()
        assert await level_sums(pillarbox.pool) == {}
        assert await totals(team) == oracle.totals(found, ALL)
        await rollups.fold(pillarbox.pool, NOW)
        assert await totals(team) == oracle.totals(found, ALL)


async def test_only_busy_and_recent_quarters_keep_their_fine_rollups(
    database_url: str, tmp_path: Path
) -> None:
    """Each level sums up to the same, but for the finest one, which is thinned out."""
    async with counted_team(database_url, tmp_path) as (pillarbox, team):
        await history(pillarbox, team, 1)
        await rollups.fold(pillarbox.pool, START)
        full = await level_sums(pillarbox.pool)
        assert set(full) == {0, 1, 2, 3}
        assert await rollups.thin(pillarbox.pool, NOW) > 0
        thinned = await level_sums(pillarbox.pool)
        assert full | {0: thinned[0]} == thinned
        assert len({thinned[1], thinned[2], thinned[3]}) == 1
        oldest = await pillarbox.pool.fetchval("SELECT min(start) FROM rollups WHERE level = 0")
        assert oldest >= NOW - rollups.FINE_FOR - timedelta(minutes=15)
        assert await rollups.thin(pillarbox.pool, NOW) == 0


async def test_rollups_beyond_retention_go_and_those_of_broadcasts_stay(
    database_url: str, tmp_path: Path
) -> None:
    async with counted_team(database_url, tmp_path) as (pillarbox, team):
        await history(pillarbox, team, 1)
        await rollups.fold(pillarbox.pool, NOW)
        limit = NOW - timedelta(days=2)
        assert await rollups.forget(pillarbox.pool, team.id, limit) > 0
        left = await pillarbox.pool.fetch("SELECT DISTINCT broadcast_id FROM rollups WHERE start < $1", limit)
        assert [row[0] for row in left] == [UUID(int=5)]


async def rebuilt(
    pillarbox: World, team: Team, *, correct: bool, since: datetime | None = None
) -> list[Difference]:
    ids = Ids(pillarbox.clock)
    return [
        lack
        async for lack in rebuilding.rebuild(pillarbox.pool, ids, team.id, NOW, correct=correct, since=since)
    ]


async def test_a_history_that_fits_has_no_differences(database_url: str, tmp_path: Path) -> None:
    async with counted_team(database_url, tmp_path) as (pillarbox, team):
        await history(pillarbox, team, 1)
        assert await rebuilt(pillarbox, team, correct=False) == []
        await rollups.fold(pillarbox.pool, NOW)
        await history(pillarbox, team, 2)
        assert await rebuilt(pillarbox, team, correct=False) == []


async def test_what_differs_is_named_and_set_right_at_every_level(database_url: str, tmp_path: Path) -> None:
    """`metrics rebuild`: rows that are missing, too large, or of a domain that never sent."""
    async with counted_team(database_url, tmp_path) as (pillarbox, team):
        found = await history(pillarbox, team, 1)
        await rollups.fold(pillarbox.pool, NOW)
        pool = pillarbox.pool
        await pool.execute(
            "UPDATE rollups SET delivered = delivered + 7 WHERE domain_name = 'harbor.example'"
        )
        await pool.execute("DELETE FROM rollups WHERE domain_name = 'quay.example'")
        seen = await rebuilt(pillarbox, team, correct=False)
        assert {lack.domain_name for lack in seen} == {"harbor.example", "quay.example"}
        assert seen == await rebuilt(pillarbox, team, correct=True)
        assert await rebuilt(pillarbox, team, correct=True) == []
        await rollups.fold(pillarbox.pool, NOW)
        assert await rebuilt(pillarbox, team, correct=False) == []
        whole = Asked(START.replace(minute=0, second=0, microsecond=0), NOW)
        answer = await team.http.get("/emails/metrics", params=whole.params())
        expected = oracle.totals(found, whole)
        assert {name: answer.json()["totals"][name] for name in ("received", "sent", "bounced")} == {
            name: expected[name] for name in ("received", "sent", "bounced")
        }


LEVELS = [
    ("level = 3", "UPDATE rollups SET delivered = delivered + 7 WHERE level = 3"),
    ("level = 2", "DELETE FROM rollups WHERE level = 2 AND domain_name = 'quay.example'"),
    ("level = 1", "UPDATE rollups SET sent = sent + 1, opened = opened - 1 WHERE level = 1"),
    ("level = 0", "UPDATE rollups SET clicked = clicked + 1 WHERE level = 0"),
    (
        "levels 2 and 3",
        "INSERT INTO rollups SELECT team_id, level + 1, date_bin('1 day', start, 'epoch'), domain_id, 'x', "
        "broadcast_id, 0,0,0,0,0,0,0,0,0,0,0,0,0,0,9 FROM rollups WHERE level = 2 LIMIT 1",
    ),
]


@pytest.mark.parametrize(("where", "damage"), LEVELS)
async def test_levels_that_differ_among_themselves_are_named_and_made_even(
    database_url: str, tmp_path: Path, where: str, damage: str
) -> None:
    """Answers come from hours and days, so these are checked as well, by `rebuild` and by `verify`."""
    async with counted_team(database_url, tmp_path) as (pillarbox, team):
        await history(pillarbox, team, 1)
        await rollups.fold(pillarbox.pool, NOW)
        was = await pillarbox.pool.fetch(EVERY_LEVEL)
        assert await gaps(pillarbox) == set()
        await pillarbox.pool.execute(damage)
        if where != "level = 0":
            assert "rollup_levels_differ" in await gaps(pillarbox)
        seen = await rebuilt(pillarbox, team, correct=False)
        assert seen
        assert seen == await rebuilt(pillarbox, team, correct=True)
        assert await rebuilt(pillarbox, team, correct=False) == []
        await rollups.fold(pillarbox.pool, NOW)
        assert await rebuilt(pillarbox, team, correct=False) == []
        assert await pillarbox.pool.fetch(EVERY_LEVEL) == was
        assert await gaps(pillarbox) == set()


EVERY_LEVEL = """
    SELECT level, CASE level WHEN 0 THEN date_bin('15 minutes', start, 'epoch') ELSE start END, domain_name,
           sum(received), sum(sent), sum(delivered), sum(opened), sum(unique_opened), sum(unsubscribed)
      FROM rollups
     GROUP BY 1, 2, 3
    HAVING sum(received + sent + delivered + opened + unique_opened + unsubscribed) > 0
     ORDER BY 1, 2, 3
"""


OF_METRICS = {"metric_differs_from_history", "rollup_levels_differ", "account_unbalanced"}


async def gaps(pillarbox: World) -> set[str]:
    """What `verify` finds; generated histories have no bodies and no work, which is not asked here."""
    return {gap.name for gap in (await reconcile(pillarbox.pool, 10, INVARIANTS)).gaps} & OF_METRICS


async def test_a_level_that_is_right_is_not_named(database_url: str, tmp_path: Path) -> None:
    """Where quarter hours alone are wrong, the day above them says what the history says."""
    async with counted_team(database_url, tmp_path) as (pillarbox, team):
        await history(pillarbox, team, 1)
        await rollups.fold(pillarbox.pool, NOW)
        await pillarbox.pool.execute("UPDATE rollups SET sent = sent + 1 WHERE level = 1")
        seen = await rebuilt(pillarbox, team, correct=True)
        assert {lack.level for lack in seen} == {levels.QUARTER}
        assert {lack.written - lack.counted for lack in seen} == {1}


async def test_retention_that_begins_beside_a_rebuild_takes_no_counts_along(
    database_url: str, tmp_path: Path
) -> None:
    """A day whose history is being removed is left as it was counted."""
    async with counted_team(database_url, tmp_path) as (pillarbox, team):
        await history(pillarbox, team, 1)
        await pillarbox.pool.execute("UPDATE metric_increments SET sent = sent + 1")
        await rollups.fold(pillarbox.pool, NOW)
        running = rebuilding.rebuild(pillarbox.pool, Ids(pillarbox.clock), team.id, NOW, correct=True)
        first = await anext(running)
        days = {first.start.date()}
        async with pillarbox.pool.acquire() as conn, conn.transaction():
            for table in ("timeline", "recipients", "emails"):
                await conn.execute(f"DELETE FROM {table}")
            await conn.execute("INSERT INTO purges VALUES ($1, $2, $3)", team.id, NOW, first_id(NOW))
        days |= {lack.start.date() async for lack in running}
        assert days == {first.start.date()}


async def test_what_retention_let_go_is_no_gap(database_url: str, tmp_path: Path) -> None:
    """`verify` and `metrics rebuild` speak of the time whose rollups are kept."""
    async with counted_team(database_url, tmp_path) as (pillarbox, team):
        await history(pillarbox, team, 1)
        await rollups.fold(pillarbox.pool, NOW)
        assert await gaps(pillarbox) == set()
        for days in (2, 0):
            oldest = rollups.oldest_day(NOW + timedelta(days=1), days)
            assert await rollups.forget(pillarbox.pool, team.id, oldest) > 0
            assert await gaps(pillarbox) == set()
            assert await rebuilt(pillarbox, team, correct=False, since=oldest) == []
