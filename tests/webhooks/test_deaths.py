"""A process that dies in the middle of a delivery: the event still arrives, under the same id (DUR-02)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kit.process import connected, first_team, worker_processes
from kit.receiver import WEBHOOKS, receiver, subscribed
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import transaction
from pillarbox.webhooks.publish import Publisher, WebhookEvent

pytestmark = pytest.mark.sweep

KILLED = {
    "webhooks.claimed": 1,
    "webhooks.before_send": 1,
    "webhooks.after_answer": 2,
    "webhooks.in_settle": 2,
}
"""How often the event arrives whose process dies there."""

OPEN = "SELECT count(*) FROM webhook_deliveries"
ENDED = "SELECT status FROM webhook_outcomes"


async def publish(url: str, count: int = 1) -> None:
    """Events of the first team, as another process would publish them: nobody is notified."""
    ids = Ids(SystemClock())
    async with connected(url) as conn, transaction(conn):
        team = await conn.fetchval("SELECT id FROM teams")
        found = [WebhookEvent(team, "domain.updated", ids.stamp().at, {"number": n}) for n in range(count)]
        await Publisher(ids).publish(conn, found)


async def over(url: str, seconds: float = 30.0) -> list[str]:
    """How deliveries ended, once none is open."""
    async with connected(url) as conn, asyncio.timeout(seconds):
        while await conn.fetchval(OPEN):
            await asyncio.sleep(0.05)
        return [row["status"] for row in await conn.fetch(ENDED)]


@pytest.mark.parametrize("point", KILLED)
async def test_a_death_there_costs_a_repetition_at_most(
    database_url: str, tmp_path: Path, point: str
) -> None:
    await first_team(database_url)
    async with receiver() as at:
        with worker_processes(database_url, tmp_path, **WEBHOOKS) as workers:
            await asyncio.to_thread(workers.start, f"{point}=kill")
            await subscribed(workers.at, at.url, "domain.updated")
            await publish(database_url)
            assert await asyncio.to_thread(workers.died) == -9
            await asyncio.to_thread(workers.start)
            assert await over(database_url) == ["success"]
        assert len(at.arrivals) == KILLED[point]
        assert len({(arrival.event, arrival.body) for arrival in at.arrivals}) == 1


@pytest.mark.parametrize("point", KILLED)
async def test_a_failure_of_ours_there_costs_no_event(database_url: str, tmp_path: Path, point: str) -> None:
    """It counts as an attempt, or is made again, and the next one succeeds."""
    await first_team(database_url)
    async with receiver() as at:
        with worker_processes(database_url, tmp_path, webhooks_retries="100ms", **WEBHOOKS) as workers:
            await asyncio.to_thread(workers.start, f"{point}=raise")
            await subscribed(workers.at, at.url, "domain.updated")
            await publish(database_url)
            assert await over(database_url) == ["success"]
        assert 1 <= len(at.arrivals) <= 2
        assert json.loads(at.arrivals[0].body)["data"] == {"number": 0}
