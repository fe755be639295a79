"""Processes that die while they take or distribute events: what was acknowledged is there once."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import httpx
import pytest

from kit.http_client import http_client
from kit.process import KEY, connected, first_team, reconciled, worker_processes

BODY = {"event": "user.signed_up", "email": "ada@quay.example", "payload": {"plan": "pro"}}
STORED = "SELECT count(*) FROM events"


@pytest.mark.parametrize(
    ("point", "expected"), [("events.before_commit", 0), ("events.after_commit", 1)], ids=["before", "after"]
)
async def test_a_process_dies_at_the_commit(
    database_url: str, tmp_path: Path, point: str, expected: int
) -> None:
    """Nobody has an answer. Before the commit there is no event; behind it there is one, and it is
    distributed."""
    await first_team(database_url)
    with worker_processes(database_url, tmp_path, roles="api") as workers:
        workers.start(f"{point}=kill")
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            with pytest.raises(httpx.TransportError):
                await client.post("/events/send", json=BODY)
            assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
            async with connected(database_url) as conn:
                assert await conn.fetchval(STORED) == expected
            workers.start()
            assert (await client.post("/events/send", json=BODY)).status_code == 202
            async with connected(database_url) as conn:
                assert await conn.fetchval(STORED) == expected + 1
    await reconciled(database_url)
    with worker_processes(database_url, tmp_path, roles="jobs") as workers:
        workers.start()
        await distributed(database_url)
    await reconciled(database_url)


async def test_a_process_is_killed_in_the_middle_of_a_burst(database_url: str, tmp_path: Path) -> None:
    """What was acknowledged is stored. The next process takes all of it over at once, and leaves nothing."""
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        worker = workers.start()
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            acknowledged = 0

            async def sends(number: int) -> None:
                nonlocal acknowledged
                for turn in range(50):
                    body = [{**BODY, "email": f"u{number}-{turn}-{n}@quay.example"} for n in range(20)]
                    try:
                        answer = await client.post("/events/send", json=body)
                    except httpx.TransportError:
                        return
                    assert answer.status_code == 202, answer.text
                    acknowledged += 20

            posting = [asyncio.create_task(sends(number)) for number in range(4)]
            async with asyncio.timeout(60):
                while acknowledged < 400:
                    await asyncio.sleep(0.005)
            os.kill(worker, signal.SIGKILL)
            await asyncio.gather(*posting)
            assert await asyncio.to_thread(workers.died) == -signal.SIGKILL
        await reconciled(database_url)
        workers.start()
        await distributed(database_url)
    await reconciled(database_url)


async def distributed(url: str) -> None:
    """Wait until no event waits, and no partition has a job."""
    left = "SELECT (SELECT count(*) FROM events) + count(*) FROM jobs WHERE kind = 'events.distribute'"
    async with asyncio.timeout(60), connected(url) as conn:
        while await conn.fetchval(left):
            await asyncio.sleep(0.05)
