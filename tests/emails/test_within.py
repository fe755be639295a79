"""Mail whose acceptance comes with work of its caller, in the same transaction (architecture 2.8)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from kit.world import Team, World, mail, world
from pillarbox.emails.accept import Accept
from pillarbox.emails.commits import TransactionHook
from pillarbox.emails.requests import parse
from pillarbox.emails.rows import PreparedEmail
from pillarbox.kernel.http.idempotency import AlreadyAnswered, Idempotency
from pillarbox.kernel.postgres.database import Connection
from pillarbox.kernel.process import faults
from pillarbox.kernel.security.authentication import Caller, Permission
from pillarbox.kernel.wire.problems import Conflict, OutcomeUnknown, Problem

Work = Callable[[Connection, Sequence[PreparedEmail]], Awaitable[None]]

STORED = "SELECT count(*) FROM emails WHERE team_id = $1"
NOTE = "UPDATE teams SET name = $2 WHERE id = $1"
NOTED = "SELECT name FROM teams WHERE id = $1"
WAITING = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
INBOX = UUID("0f6c2d1e-8a44-4b6f-9d0b-6a1f6f3c2b10")


async def nothing(_: Connection, __: Sequence[PreparedEmail]) -> None:
    """Work that does nothing."""


async def stored(
    team: Team, work: Work = nothing, *, key: Idempotency | None = None, daily: int | None = None
) -> UUID:
    """An email of this team that is accepted together with this work."""
    accept = team.world.app.need(Accept)
    caller = Caller(team.id, 1, None, Permission.FULL, daily_quota=daily)
    outgoing = parse.outgoing(mail(), team.world.clock.now())
    checked = await accept.check(caller, outgoing)
    body = await accept.store(
        caller,
        [checked],
        idempotency=key,
        answer=lambda ids: str(ids[0]).encode(),
        hook=TransactionHook(INBOX, work),
    )
    return UUID(body.decode())


async def noting(conn: Connection, drafts: Sequence[PreparedEmail]) -> None:
    await conn.execute(NOTE, drafts[0].team_id, str(drafts[0].id))


async def test_the_email_and_the_work_are_committed_together(running: World) -> None:
    team = await running.team()
    email = await stored(team, noting)
    assert await running.pool.fetchval(NOTED, team.id) == str(email)
    assert (await team.settled(str(email)))["last_event"] == "delivered"


@pytest.mark.parametrize("point", ["accept.within", "accept.before_commit"])
async def test_what_fails_behind_the_work_undoes_it(running: World, point: str) -> None:
    team = await running.team()
    with faults.armed(f"{point}=raise"), pytest.raises(faults.FaultRaised):
        await stored(team, noting)
    assert await running.pool.fetchval(NOTED, team.id) == "Harbor"
    assert await running.pool.fetchval(STORED, team.id) == 0


async def test_work_that_refuses_leaves_nothing_and_its_key_free(running: World) -> None:
    team = await running.team()
    key = Idempotency("POST /somewhere", "once", b"x" * 32)

    async def refuse(conn: Connection, drafts: Sequence[PreparedEmail]) -> None:
        await noting(conn, drafts)
        raise Conflict("This draft was already sent")

    with pytest.raises(Conflict):
        await stored(team, refuse, key=key)
    assert await running.pool.fetchval(STORED, team.id) == 0
    assert await running.pool.fetchval(NOTED, team.id) == "Harbor"
    await stored(team, key=key)
    with pytest.raises(AlreadyAnswered):
        await stored(team, noting, key=key)
    assert await running.pool.fetchval(NOTED, team.id) == "Harbor"
    assert await running.pool.fetchval(STORED, team.id) == 1


async def test_a_quota_that_is_used_up_undoes_the_work(running: World) -> None:
    team = await running.team()
    await running.pool.execute("UPDATE teams SET daily_quota = 1 WHERE id = $1", team.id)
    await stored(team, daily=1)
    with pytest.raises(Problem, match="daily email quota"):
        await stored(team, noting, daily=1)
    assert await running.pool.fetchval(NOTED, team.id) == "Harbor"


async def test_work_that_waits_for_a_lock_delays_nobody_else(database_url: str, tmp_path: Path) -> None:
    async with world(database_url, tmp_path) as pillarbox:
        team, other = await pillarbox.team(), await pillarbox.team("Quay")
        beside = await asyncpg.connect(database_url)
        try:
            await beside.execute("BEGIN")
            await beside.execute(NOTE, team.id, "held")
            waiting = [asyncio.create_task(stored(team, noting)) for _ in range(8)]
            while await beside.fetchval(WAITING) is None:
                await asyncio.sleep(0.01)
            assert (await team.settled(await team.send()))["last_event"] == "delivered"
            assert (await other.settled(await other.send()))["last_event"] == "delivered"
            assert len(await beside.fetch(WAITING)) == 1, "those of one key wait in the process"
            await beside.execute("ROLLBACK")
            ids = await asyncio.gather(*waiting)
        finally:
            await beside.close()
        assert len(set(ids)) == 8
        assert await pillarbox.pool.fetchval(STORED, team.id) == 9


async def test_a_connection_that_is_lost_during_the_work_stores_nothing(running: World) -> None:
    team = await running.team()

    async def cut(conn: Connection, drafts: Sequence[PreparedEmail]) -> None:
        await noting(conn, drafts)
        await conn.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(Problem) as refused:
        await stored(team, cut)
    assert not isinstance(refused.value, OutcomeUnknown)
    assert await running.pool.fetchval(NOTED, team.id) == "Harbor"
    assert await running.pool.fetchval(STORED, team.id) == 0
    await stored(team, noting)
