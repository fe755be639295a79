"""The limit of a team over two real nodes: two servers with folders of their own on one PostgreSQL.

What is counted is compared with the time that passed, so a slow machine makes the numbers smaller and no
wrong ones right. The exact counts are in `tests/api/test_shared_rate_limit.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from kit.frozen import freezable
from kit.load import Line
from kit.process import KEY, PATIENCE, Served, served
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.postgres.database import open_pool
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.security.team_rate import TeamRate
from repository.running import Watched, children_of

pytestmark = pytest.mark.sweep

LIMIT = 20
SECONDS = 6.0
PAUSE = 0.01
LEAST = 0.7
MOST = 1.2
"""Of the limit in the time that passed. The lower one leaves room for a machine that stands still at times,
the upper one for the window that begins at the end."""


async def _asks(node: Served, until: float) -> int:
    """One client that asks on and on; how many answers were no refusals."""
    line = Line(*node.ready(), KEY)
    let_through = 0
    while time.monotonic() < until:
        status, _ = await line.ask("GET", "/api-keys")
        assert status in {200, 429}
        let_through += status == 200
        await asyncio.sleep(PAUSE)
    line.hang_up()
    return let_through


async def part_of_limit(*nodes: Served) -> float:
    """Three clients for each of these nodes; what was let through, as a part of the limit."""
    began = time.monotonic()
    clients = [_asks(node, began + SECONDS) for node in nodes for _ in range(3)]
    let_through = sum(await asyncio.gather(*clients))
    return let_through / (LIMIT * (time.monotonic() - began))


async def test_two_servers_share_the_limit_of_a_team(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    given = {
        "database_url": database_url,
        "rate_limit": str(LIMIT),
        "secret_key": KeyRing.generate_text(),
        "blob_url": f"file:{tmp_path / 'blobs'}",
    }
    with served(tmp_path / "one", **given) as one:
        assert LEAST <= await part_of_limit(one) <= MOST
        with served(tmp_path / "two", **given) as two:
            one.log.wait_for('"rate_limit.nodes"', count=2)
            two.log.wait_for('"rate_limit.nodes"', count=2)
            assert LEAST <= await part_of_limit(one, two) <= MOST
            assert LEAST <= await part_of_limit(two) <= MOST
            family = Watched(children_of(two.process.pid))
            os.kill(two.process.pid, signal.SIGKILL)
            two.process.wait(PATIENCE)
            family.all_ended()
        assert LEAST <= await part_of_limit(one) <= MOST
        one.log.wait_for('"rate_limit.nodes"', count=4)
        assert LEAST <= await part_of_limit(one) <= MOST
        with served(tmp_path / "two", **given):
            one.log.wait_for('"rate_limit.nodes"', count=6)
        one.log.wait_for('"rate_limit.nodes"', count=8)


async def test_a_database_that_stands_still_leaves_each_node_its_equal_part(tmp_path: Path) -> None:
    """The requests themselves would get 503 soon; here only the limit is asked, which waits for nothing."""
    clock, team = SystemClock(), uuid4()
    async with freezable(tmp_path) as database:
        pool = await open_pool(database.url, limit=2)
        rates = []
        for _ in range(2):
            fd = shared_memory.create()
            rates.append(TeamRate(Windows(fd, clock), fd, pool, clock))
        for rate in (*rates, rates[0]):
            await rate.look()
        assert [rate.nodes for rate in rates] == [2, 2]
        await _reaches(rates[0], team, LIMIT)
        with database.frozen():
            began = time.monotonic()
            let_through = [0, 0]
            while time.monotonic() < began + 3.0:
                for place, rate in enumerate(rates):
                    let_through[place] += (await rate.take(team, LIMIT)).allowed
            windows = time.monotonic() - began + 2.0
            assert all(0 < taken <= LIMIT // 2 * windows for taken in let_through)
        await _reaches(rates[0], team, LIMIT)
        for rate in rates:
            await rate.leave()
        await rates[0].look()
        assert rates[0].nodes == 1
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await pool.close()


async def _reaches(rate: TeamRate, team: UUID, wanted: int) -> None:
    """Return when one node has let through more than its equal part within a window."""
    while True:
        taken = 0
        async with asyncio.timeout(PATIENCE):
            until = time.monotonic() + 0.9
            while time.monotonic() < until:
                taken += (await rate.take(team, wanted)).allowed
                await asyncio.sleep(PAUSE)
        if taken > wanted // 2 + 2:
            return
