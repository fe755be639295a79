"""Graphs of several megabytes: others are answered while one is read."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from automations.test_heavy_rules import START, many
from kit.automation_rows import an_automation, connection
from kit.automation_runs import run_of, sent, walk
from kit.world import World
from pillarbox.kernel.process.offload import THREADS, in_thread
from pillarbox.worker import tune_garbage_collector

MOST = 0.15
"""Processor time of one turn of the loop; to read such a graph takes longer."""


def large(conditions: int = 8, comparisons: int = 5000) -> dict[str, Any]:
    names = [f"c{number}" for number in range(conditions)]
    steps = [{"key": name, "type": "condition", "config": many(comparisons)} for name in names]
    return {"steps": [START, *steps], "connections": [connection("start", name) for name in names]}


@asynccontextmanager
async def standing_still() -> AsyncIterator[list[float]]:
    """The processor time that each turn of the event loop took: what other programs take does not count."""
    gaps = list[float]()

    async def watch() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            gaps.append((now := time.thread_time()) - before)
            before = now

    watching = asyncio.create_task(watch())
    try:
        yield gaps
    finally:
        watching.cancel()


@pytest.fixture
def collected_as_in_a_worker() -> Iterator[None]:
    """The objects of the test session are not gone through."""
    before = gc.get_threshold()
    tune_garbage_collector()
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("collected_as_in_a_worker")
async def test_others_are_answered_while_a_large_graph_is_read(pillarbox: World) -> None:
    team, graph = await pillarbox.team(), large()
    automation = await an_automation(team, graph)
    url, asked = f"/automations/{automation}", list[tuple[str, float]]()

    async def quick(name: str, method: str, path: str, body: Any = None) -> Any:
        async with standing_still() as gaps:
            answer = await team.call(method, path, body)
        assert answer.status_code < 300, answer.text[:200]
        asked.append((name, max(gaps)))
        return answer

    await quick("list", "GET", "/automations")
    shown = await quick("show", "GET", url)
    assert shown.json()["steps"] == graph["steps"]
    assert shown.json()["connections"] == [{**one, "type": "default"} for one in graph["connections"]]
    await quick("enable", "PATCH", url, {"status": "enabled"})
    await sent(team, "user.signed_up", text="a")
    async with standing_still() as gaps:
        await walk(pillarbox)
    asked.append(("walk", max(gaps)))
    run = await run_of(team, automation)
    assert run["status"] == "completed"
    await quick("run", "GET", f"{url}/runs/{run['id']}")
    await quick("duplicate", "POST", f"{url}/duplicate")
    await quick("stop", "POST", f"{url}/stop")
    await quick("delete", "DELETE", url)
    assert [(name, gap) for name, gap in asked if gap > MOST] == []


async def test_large_graphs_that_wait_for_a_thread_hold_no_connection(pillarbox: World) -> None:
    """A program that sends many of them at once would leave none to the other teams."""
    team, body = await pillarbox.team(), {"name": "Large", **large(1, 1000)}
    automation = await an_automation(team, large(1, 1))
    free = threading.Event()
    busy = [asyncio.create_task(in_thread(free.wait, 60)) for _ in range(THREADS)]
    try:
        count = pillarbox.pool.get_max_size()
        many_of = [asyncio.create_task(team.call("POST", "/automations", body)) for _ in range(count)]
        changed = asyncio.create_task(team.call("PATCH", f"/automations/{automation}", body))
        await asyncio.wait(many_of, timeout=1)
        answer = await asyncio.wait_for(team.get("/automations?limit=1"), 10)
        assert answer.status_code == 200
    finally:
        free.set()
    await asyncio.gather(*busy)
    assert {one.status_code for one in await asyncio.gather(*many_of)} == {201}
    assert (await changed).status_code == 200


async def test_the_same_large_graph_is_no_new_version(pillarbox: World) -> None:
    team, graph = await pillarbox.team(), large(1, 2000)
    automation = await an_automation(team, graph)
    for steps, version in ((graph, 1), (large(1, 1999), 2)):
        assert (await team.call("PATCH", f"/automations/{automation}", steps)).status_code == 200
        assert await pillarbox.pool.fetchval("SELECT version FROM automations") == version
