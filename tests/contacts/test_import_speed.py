"""Imports give way to mail, and mail never stops them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg

from kit.clock import ManualClock
from kit.imports import accepted, ended, importing_team
from kit.process import reconciled
from pillarbox.contacts.imports.batches import MOST_ROWS, ImportPlan, batches
from pillarbox.contacts.imports.speed import FEW_ROWS, LONGEST_REST, REST, ImportSpeed
from pillarbox.emails.recent_mail import LOOK_EVERY, QUIET_AFTER, RecentMail

ROWS = 12_000
STEP = 1 / 64
"""Seconds; a sum of them is exact."""


async def rested(speed: ImportSpeed, clock: ManualClock, took: float) -> float:
    """How long the import rests after a batch that took so long."""
    began = clock.boottime()
    clock.advance(took)
    ended_at = clock.boottime()
    resting = asyncio.create_task(speed.rest(began))
    await asyncio.sleep(0)
    while not resting.done():
        clock.advance(STEP)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return clock.boottime() - ended_at


async def test_without_mail_an_import_takes_all_it_can(database_url: str) -> None:
    clock = ManualClock()
    speed = ImportSpeed(RecentMail(clock), clock)
    conn = await asyncpg.connect(database_url)
    try:
        assert await speed.rows(conn) == MOST_ROWS
        assert await rested(speed, clock, 0.2) == 0
    finally:
        await conn.close()


async def test_beside_mail_an_import_takes_a_quarter_of_the_time(database_url: str, tmp_path: Path) -> None:
    """Also from its first batch on; and a batch that had to wait is not followed by a long rest."""
    async with importing_team(database_url, tmp_path) as team:
        clock = ManualClock()
        mail = RecentMail(clock)
        speed = ImportSpeed(mail, clock)
        mail.note()
        async with team.world.pool.acquire() as conn:
            assert await speed.rows(conn) == FEW_ROWS
            assert await rested(speed, clock, STEP) == STEP * REST
            assert await rested(speed, clock, 1.0) == LONGEST_REST
            clock.advance(QUIET_AFTER)
            assert await speed.rows(conn) == MOST_ROWS


async def test_mail_that_another_process_accepts_is_known(database_url: str, tmp_path: Path) -> None:
    """Of it there is only what PostgreSQL counts: within some two seconds, and for as long as more comes."""
    async with importing_team(database_url, tmp_path) as team:
        clock = ManualClock()
        mail = RecentMail(clock)
        async with team.world.pool.acquire() as conn:
            assert not await mail.is_coming(conn)
            async with asyncio.timeout(20):
                while not await mail.is_coming(conn):
                    await team.send()
                    await asyncio.sleep(0.1)
                    clock.advance(LOOK_EVERY)
            clock.advance(QUIET_AFTER)
            assert not await mail.is_coming(conn)


def test_each_batch_has_as_many_rows_as_are_wanted() -> None:
    """None is made that is not asked for, and together they are the file."""
    content = iter(["".join(f"r{number}@x.example\n" for number in range(10)).encode()])
    plan = ImportPlan(
        encoding="utf-8",
        delimiter=",",
        fields={"email": 0},
        properties=(),
        skip=False,
        offset=0,
        row=0,
        errors_left=1000,
    )
    wanted = iter([3, 1, 4, 9])
    found = list(batches(lambda: next(content, b""), plan, lambda: 0, lambda: next(wanted)))
    assert [(one.rows, one.row, one.is_last) for one in found] == [
        (3, 3, False),
        (1, 4, False),
        (4, 8, False),
        (2, 10, True),
    ]


async def test_an_import_beside_mail_ends(database_url: str, tmp_path: Path) -> None:
    """Mail comes all the time: the batches are small, and every row is applied and counted once."""
    async with importing_team(database_url, tmp_path) as team:
        places = set()
        place = "SELECT (checkpoint->>'row')::int FROM contact_imports WHERE status = 'in_progress'"
        await team.send()
        file = "email\n" + "".join(f"reader.{number}@x.example\n" for number in range(ROWS))
        waiting = asyncio.create_task(ended(team, await accepted(team, file)))
        while not waiting.done():
            await team.send()
            places.add(await team.world.pool.fetchval(place))
        found = await waiting
        assert (found["status"], found["counts"]["total"], found["counts"]["created"]) == (
            "completed",
            ROWS,
            ROWS,
        )
        assert await team.world.pool.fetchval("SELECT count(*) FROM contacts") == ROWS
        assert {at % MOST_ROWS for at in places if at} - {0}, places
        assert {at % FEW_ROWS for at in places if at} <= {0}, places
        await reconciled(database_url)
