"""A team that floods the API delays no other team: what exceeds its share waits in its own queue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kit.world import Team, World, mail
from pillarbox.kernel.postgres.connection_limits import REQUESTS

FLOOD = 100
BLOCK = "LOCK TABLE topics IN ACCESS EXCLUSIVE MODE"
BLOCKED = """
    SELECT count(*)
      FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%topics%'
"""


async def lists(team: Team, _: int) -> Any:
    return await team.get("/topics")


async def creates(team: Team, number: int) -> Any:
    return await team.post("/topics", {"name": f"Berth {number}", "default_subscription": "opt_in"})


@pytest.mark.parametrize("request_of", [lists, creates])
async def test_a_flood_of_slow_requests_delays_no_other_team(running: World, request_of: Any) -> None:
    harbor, quay = await running.team(), await running.team("Quay")
    await quay.domain("quay.example")
    blocked = running.app.kit.engine_pool.fetchval
    async with running.pool.acquire() as conn:
        holding = conn.transaction()
        await holding.start()
        await conn.execute(BLOCK)
        flood = [asyncio.create_task(request_of(harbor, number)) for number in range(FLOOD)]
        async with asyncio.timeout(60):
            while not await blocked(BLOCKED):
                await asyncio.sleep(0.02)
        sent = await asyncio.gather(
            *[quay.post("/emails", mail(**{"from": "a@quay.example"})) for _ in range(20)]
        )
        listed = await quay.get("/emails")
        waiting, in_database = [one for one in flood if not one.done()], await blocked(BLOCKED)
        await holding.rollback()
    assert {answer.status_code for answer in sent} == {200}, sent[0].text
    assert listed.status_code == 200
    assert len(waiting) >= FLOOD * 0.9, "on a busy machine some have waited for their turn too long"
    assert in_database <= REQUESTS // 2
    assert {(await one).status_code for one in waiting} <= {200, 201}
