"""What is remembered of earlier answers never shows in an answer, whatever changes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kit import oracle
from kit.clock import ManualClock
from kit.histories import History, Sender, generate, instant
from kit.manual_world import manual_world
from kit.oracle import Asked
from kit.world import Team, World
from pillarbox.kernel.ids import Ids
from pillarbox.metrics.memory import ENTRY, ID, CachedPiece, PieceCache
from pillarbox.metrics.wire import PeriodRows
from pillarbox.timeline import rebuilding, rollups
from pillarbox.timeline.record import Timeline

NOW = instant("2026-11-21T10:07:33.123456")
START = NOW - timedelta(days=4)
FIRST, TODAY = (at.replace(hour=0, minute=0, second=0, microsecond=0) for at in (START, NOW))
HARBOR = UUID(int=1)
SENDERS = (
    Sender(HARBOR, "harbor.example", None),
    Sender(UUID(int=2), "quay.example", UUID(int=5)),
    Sender(None, "sandbox.example", None),
)
ASKED = tuple(
    Asked(start=FIRST, end=end, zone=zone, granularity=granularity, dimensions=dimensions, domains=domains)
    for zone, granularity, dimensions, domains in (
        ("UTC", "daily", ("period", "domain"), ()),
        ("UTC", "daily", ("period", "domain"), (HARBOR,)),
        ("UTC", "daily", ("period",), ()),
        ("UTC", "hourly", ("period", "domain", "broadcast"), ()),
        ("UTC", "daily", (), ()),
        ("Asia/Kolkata", "daily", ("period", "domain"), ()),
        ("Asia/Kolkata", "daily", ("period", "broadcast"), ()),
        ("Pacific/Auckland", "weekly", ("period", "domain"), ()),
        ("Asia/Kathmandu", "hourly", ("period", "domain"), ()),
    )
    for end in (TODAY, TODAY - timedelta(hours=7), NOW)
)


INSERTED = f"""
    INSERT INTO rollups
    SELECT '{{team}}', {{level}}, at, '{HARBOR}', 'x', '{HARBOR}', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
      FROM unnest('{{{{{FIRST.isoformat()},{TODAY.isoformat()}}}}}'::timestamptz[]) AS at
"""


@pytest.fixture
@asynccontextmanager
async def counted_team(database_url: str, tmp_path: Path) -> AsyncIterator[tuple[World, Team]]:
    async with manual_world(database_url, tmp_path, ManualClock(NOW)) as pillarbox:
        yield pillarbox, await pillarbox.team()


async def history(pillarbox: World, team: Team, seed: int, emails: int = 24) -> History:
    timeline = pillarbox.app.need(Timeline)
    return await generate(pillarbox.pool, timeline, team.id, [(START, NOW)], SENDERS, emails, seed, NOW)


async def answer(team: Team, asked: Asked) -> dict[str, Any]:
    reply = await team.http.get("/emails/metrics", params=asked.params())
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


async def check(team: Team, found: History) -> None:
    """Every question, twice: the second time most of it is remembered."""
    for asked in ASKED:
        expected = oracle.totals(found, asked), oracle.data(found, asked)
        for _ in range(2):
            found_answer = await answer(team, asked)
            assert (found_answer["totals"], found_answer["data"]) == expected, asked


async def test_late_events_show_in_days_that_were_asked_for_before(counted_team: tuple[World, Team]) -> None:
    """Before they are folded and after; all questions are asked between all steps."""
    pillarbox, team = counted_team
    found = await history(pillarbox, team, 1)
    await check(team, found)
    await rollups.fold(pillarbox.pool, NOW)
    await check(team, found)
    late = await history(pillarbox, team, 2, 10)
    found.emails += late.emails
    found.events += late.events
    await check(team, found)
    await rollups.fold(pillarbox.pool, NOW)
    await check(team, found)


async def test_days_that_are_known_are_not_counted_again(counted_team: tuple[World, Team]) -> None:
    """The second time no rollup of a day is read that is over."""
    pillarbox, team = counted_team
    await history(pillarbox, team, 1)
    await rollups.fold(pillarbox.pool, NOW)
    for asked in ASKED:
        if asked.end == TODAY:
            found_answer = await answer(team, asked)
            async with pillarbox.pool.acquire() as conn:
                # Unseen by the versions, which triggers write.
                await conn.execute("ALTER TABLE rollups DISABLE TRIGGER USER")
                await conn.execute("UPDATE rollups SET received = received + 1000")
                await conn.execute("ALTER TABLE rollups ENABLE TRIGGER USER")
            assert await answer(team, asked) == found_answer


async def test_mending_and_removing_show(counted_team: tuple[World, Team]) -> None:
    """`metrics rebuild` and retention change days that were asked for before."""
    pillarbox, team = counted_team
    found = await history(pillarbox, team, 1)
    await rollups.fold(pillarbox.pool, NOW)
    await check(team, found)
    await pillarbox.pool.execute("UPDATE rollups SET sent = sent + 3 WHERE level = 3")
    assert (await answer(team, ASKED[0]))["totals"] != oracle.totals(found, ASKED[0])
    mended = rebuilding.rebuild(pillarbox.pool, Ids(pillarbox.clock), team.id, NOW, correct=True)
    assert [lack async for lack in mended]
    await check(team, found)
    await rollups.forget(pillarbox.pool, team.id, FIRST + timedelta(days=2))
    days = {
        row["period"] for row in (await answer(team, ASKED[0]))["data"] if row["domain_id"] == f"{HARBOR}"
    }
    assert days == {f"{FIRST.date() + timedelta(days=n)}" for n in (2, 3)}


async def test_rollups_that_are_gone_at_once_are_not_cached(counted_team: tuple[World, Team]) -> None:
    """TRUNCATE leaves no trace of which days there were."""
    pillarbox, team = counted_team
    found = await history(pillarbox, team, 1)
    await rollups.fold(pillarbox.pool, NOW)
    await check(team, found)
    await pillarbox.pool.execute("TRUNCATE rollups")
    for asked in ASKED:
        assert not any((await answer(team, asked))["totals"].values()), asked


async def test_answers_beside_writers_and_folders_never_go_back(counted_team: tuple[World, Team]) -> None:
    """Each answer is of one snapshot: it has all that one before it had, and its rows are its totals."""
    pillarbox, team = counted_team
    found = await history(pillarbox, team, 1)
    await rollups.fold(pillarbox.pool, NOW)
    writers = [asyncio.create_task(history(pillarbox, team, seed, 15)) for seed in (2, 3)]

    async def keep_folding() -> None:
        while not all(writer.done() for writer in writers):
            await rollups.fold(pillarbox.pool, NOW)

    async def keep_reading(asked: Asked) -> None:
        last = 0
        while not all(writer.done() for writer in writers):
            found_answer = await answer(team, asked)
            seen = found_answer["totals"]["received"]
            assert sum(row["received"] for row in found_answer["data"]) == seen >= last
            last = seen

    asking = [keep_reading(asked) for asked in (ASKED[0], ASKED[6], ASKED[15])]
    await asyncio.gather(keep_folding(), *asking, *writers)
    await rollups.fold(pillarbox.pool, NOW)
    for writer in writers:
        found.emails += writer.result().emails
        found.events += writer.result().events
    await check(team, found)


@pytest.mark.parametrize("level", [0, 1, 2, 3])
async def test_every_change_of_a_rollup_is_a_new_version_of_its_day(
    counted_team: tuple[World, Team], level: int
) -> None:
    """Rollups of ten seconds are not what periods are made of."""
    pillarbox, team = counted_team
    pool = pillarbox.pool

    async def versions() -> dict[datetime, UUID]:
        return dict(map(tuple, await pool.fetch("SELECT day, version FROM rollup_versions")))

    seen = [await versions()]
    for change in (
        INSERTED.format(team=team.id, level=level),
        f"UPDATE rollups SET opened = 1 WHERE start = '{FIRST.isoformat()}'",
        "DELETE FROM rollups",
    ):
        await pool.execute(change)
        seen.append(await versions())
    if level == 0:
        assert seen == [{}] * 4
        return
    assert [set(here) for here in seen] == [set(), {FIRST, TODAY}, {FIRST, TODAY}, {FIRST, TODAY}]
    assert seen[1][FIRST] != seen[2][FIRST]
    assert seen[1][TODAY] == seen[2][TODAY]
    assert {seen[2][FIRST], seen[2][TODAY]}.isdisjoint(seen[3].values())


def test_the_cache_is_bounded_and_the_oldest_goes_first() -> None:
    memory = PieceCache(limit=3 * (ENTRY + ID + 10))
    kept = [CachedPiece((None,), PeriodRows(1, bytes(10), (n,))) for n in range(5)]
    for n in (0, 1, 2, 1):
        memory.put((n,), kept[n])
    assert memory.find((0,)) == kept[0]
    memory.put((3,), kept[3])
    assert [n for n in range(5) if memory.find((n,)) is not None] == [0, 1, 3]
    for large in (
        CachedPiece((None,), PeriodRows(1, bytes(4 * ENTRY), (4,))),
        CachedPiece((None,), kept[4].piece, ids=4 * ENTRY // ID),
        CachedPiece((None,) * (4 * ENTRY // ID), kept[4].piece),
    ):
        memory.put((4,), large)
        assert [n for n in range(5) if memory.find((n,)) is not None] == [0, 1, 3]
