"""Random automations while a process is killed: what comes of them is what the plain reference says."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import httpx
import pytest

from automations.random_graphs import Place, a_graph
from automations.reference import Reference
from kit.http_client import http_client
from kit.process import KEY, WorkerProcesses, connected, first_team, reconciled, worker_processes

pytestmark = pytest.mark.sweep

COUNT = 6
FORCED = ("segment", "mail", "wait", "number", "delay", "update")
"""Each graph passes these, and so each point."""


def points(always: list[str], more: list[str]) -> list[Any]:
    """Those that are always killed at, and those of the long sweep."""
    return [*always, *(pytest.param(one, marks=pytest.mark.slow) for one in more)]


# `test_deaths` kills at each of them, with one graph.
START_POINTS = points(
    ["automations.written=kill@3"],
    [
        "events.told=kill@2",
        "automations.claimed=kill@1",
        "automations.claimed=kill@3",
        "automations.written=kill@1",
        "automations.committed=kill@2",
        "accept.within=kill@1",
        "accept.before_commit=kill@1",
        "accept.after_commit=kill@1",
    ],
)
EVENT_POINTS = points(
    ["automations.written=kill@1", "automations.committed=kill@1", "accept.after_commit=kill@1"],
    ["events.told=kill@2", "automations.claimed=kill@1", "accept.within=kill@1"],
)
SOON = """
    SELECT (SELECT count(*) FROM events)
           + (SELECT count(*) FROM automation_work WHERE due_at < now() + interval '1 day')
           + (SELECT count(*) FROM jobs WHERE kind LIKE 'events.distribute%')
"""
RUNS = """
    SELECT c.address, r.id, r.status FROM automation_runs r JOIN contacts c ON c.id = r.contact_id
"""
MAILS = "SELECT to_list::text AS address, subject FROM emails"


class Case:
    """An automation of a server, with what the reference says of it."""

    def __init__(self, client: httpx.AsyncClient, url: str, random: Random, segment: str) -> None:
        self.client = client
        self.url = url
        self.made = a_graph(random, Place(segment, short=True), 0, forced=FORCED)
        lengths = {(0, key): length for key, length in self.made.lengths.items()}
        self.reference = Reference([self.made.graph], lengths, least=0)
        self.words = [random.choice(["Ada", "Bo", "x"]) for _ in range(COUNT)]
        self.rounds = 0

    async def begin(self) -> str:
        """Create and enable it; its id."""
        answer = await self.client.post(
            "/automations", json={"name": "Random", "status": "enabled", **self.made.graph}
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def send(self, name: str) -> None:
        """An event of each contact, all in one request, whose answer nobody may hear."""
        body = []
        for number, word in enumerate(self.words):
            email, payload = f"c{number}@quay.example", {"n": number + self.rounds, "word": word}
            body.append({"event": name, "email": email, "payload": payload})
            self.reference.event(1000.0 * self.rounds, number, email, name, payload)
        self.reference.until(1000.0 * self.rounds + 999)
        self.rounds += 1
        try:
            answer = await self.client.post("/events/send", json=body)
            assert answer.status_code == 202, answer.text
        except httpx.TransportError:
            pass

    async def quiet(self) -> None:
        """Wait until no event waits and no step is due today."""
        async with asyncio.timeout(60), connected(self.url) as conn:
            while await conn.fetchval(SOON):
                await asyncio.sleep(0.05)

    async def compare(self, automation: str, conn: asyncpg.Connection) -> None:
        runs = {row["address"]: row for row in await conn.fetch(RUNS)}
        assert len(runs) == len(self.reference.runs) == COUNT
        for wanted in self.reference.runs:
            found = runs[wanted.contact.email]
            answer = await self.client.get(f"/automations/{automation}/runs/{found['id']}")
            steps: list[dict[str, Any]] = answer.json()["steps"]
            assert {one["key"]: one["status"] for one in steps} == self.reference.statuses(wanted)
            assert answer.json()["status"] == wanted.status
        mails = Counter((row["address"].strip('{}[]"'), row["subject"]) for row in await conn.fetch(MAILS))
        assert mails == Counter(self.reference.mails)
        assert await conn.fetchval("SELECT count(*) FROM segment_members") == COUNT


async def a_case(client: httpx.AsyncClient, url: str, seed: str) -> Case:
    for alias, variables in (("plain", []), ("number", [{"key": "N", "type": "number"}])):
        content = {"name": alias, "alias": alias, "from": "hi@harbor.example", "html": "<p>Hello</p>"}
        answer = await client.post("/templates", json={**content, "subject": "Hello", "variables": variables})
        assert answer.status_code == 201, answer.text
        assert (await client.post(f"/templates/{alias}/publish")).status_code == 200
    segment = (await client.post("/segments", json={"name": "Crew"})).json()["id"]
    return Case(client, url, Random(seed), segment)


async def killed(workers: WorkerProcesses) -> None:
    assert await asyncio.to_thread(workers.died) == -signal.SIGKILL


async def to_the_end(case: Case, automation: str) -> None:
    """Events, until nobody waits for one."""
    await case.quiet()
    async with connected(case.url) as conn:
        await case.compare(automation, conn)
        while await conn.fetchval("SELECT count(*) FROM automation_work"):
            assert case.rounds < 10
            await case.send("e1")
            await case.quiet()
            await case.compare(automation, conn)
    await reconciled(case.url)


@pytest.mark.parametrize("fault", START_POINTS)
async def test_a_process_dies_while_runs_begin(database_url: str, tmp_path: Path, fault: str) -> None:
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        workers.start(fault)
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            case = await a_case(client, database_url, fault)
            automation = await case.begin()
            await case.send("e0")
            await killed(workers)
            workers.start()
            await to_the_end(case, automation)


@pytest.mark.parametrize("fault", EVENT_POINTS)
async def test_a_process_dies_while_waits_end(database_url: str, tmp_path: Path, fault: str) -> None:
    await first_team(database_url)
    with worker_processes(database_url, tmp_path) as workers:
        workers.start()
        async with http_client("http://{}:{}".format(*workers.at), KEY) as client:
            case = await a_case(client, database_url, f"waits {fault}")
            automation = await case.begin()
            await case.send("e0")
            await case.quiet()
            workers.kill()
            workers.start(fault)
            await case.send("e1")
            await killed(workers)
            workers.start()
            await to_the_end(case, automation)
