"""Receivers that fail at random while processes are killed: what arrived is what the database has (WH-04)."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from pathlib import Path

import asyncpg
import pytest

from kit.ledger import Journal
from kit.load import LoadClient
from kit.process import KEY, connected, first_team, worker_processes
from kit.receiver import WEBHOOKS, Arrival, hangs, receiver, resets, status, subscribed

pytestmark = pytest.mark.sweep

KINDS = ("email.sent", "email.delivered")
SMALL = (150, 1.0, 2, 0.01)
LARGE = (20_000, 3.0, 20, 0.0005)
"""Emails, seconds between two deaths, deaths, and the share of answers that do not come: each takes one of
the ten slots for fifteen seconds."""

FAILING = 0.3
RETRIES = ",".join(["500ms"] * 30)

EVENTS = """
    SELECT o.event_id, e.payload, o.status
      FROM webhook_outcomes o
      JOIN webhook_events e ON e.team_id = o.team_id AND e.id = o.event_id
"""
OPEN = """
    SELECT (SELECT count(*) FROM webhook_deliveries)
         + (SELECT count(*) FROM recipients WHERE state NOT IN ('delivered', 'bounced', 'failed'))
"""


class Moody:
    """Fails three times in ten, in every possible way; keeps what it took."""

    def __init__(self, chance: random.Random, silent: float) -> None:
        self._chance = chance
        self._silent = silent
        self.taken: dict[str, set[bytes]] = defaultdict(set)
        self.seen: dict[str, set[bytes]] = defaultdict(set)

    async def __call__(self, arrival: Arrival) -> bytes | None:
        self.seen[arrival.event].add(arrival.body)
        if self._chance.random() < self._silent:
            return await hangs(arrival)
        if self._chance.random() >= FAILING:
            self.taken[arrival.event].add(arrival.body)
            return status(200)
        return await self._fail(arrival)

    async def _fail(self, arrival: Arrival) -> bytes | None:
        failure = self._chance.randrange(4)
        if failure == 0:
            return status(500, b"busy")
        if failure == 1:
            return await resets(arrival)
        if failure == 2:
            return status(302, b"", "Location: http://127.0.0.1:1/")
        arrival.writer.write(b"HTTP/1.1 503 Slow\r\nContent-Length: 4\r\n\r\n")
        await asyncio.sleep(0.2)
        return b"slow"


@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)])
async def test_events_at_the_receiver_are_the_events_in_the_database(
    database_url: str, tmp_path: Path, size: tuple[int, float, int, float]
) -> None:
    """At least once, under one id with one body, however often it is repeated and whichever process dies."""
    emails, every, kills, silent = size
    chance = random.Random(11)
    moody = Moody(chance, silent)
    await first_team(database_url)
    async with receiver() as at:
        at.answers(moody)
        with worker_processes(database_url, tmp_path, webhooks_retries=RETRIES, **WEBHOOKS) as workers:
            for place in (0, 1):
                await asyncio.to_thread(workers.start, place=place)
            await subscribed(workers.at, at.url, *KINDS)

            async def kill_some() -> None:
                for _ in range(kills):
                    await asyncio.sleep(every)
                    place = chance.randrange(2)
                    await asyncio.to_thread(workers.kill, place=place)
                    await asyncio.to_thread(workers.start, place=place)

            async with LoadClient(workers.at, KEY, Journal(tmp_path / "ledger")) as courier:
                sending = courier.post_many(emails, 300, lambda _: ["ada@quay.example"])
                await asyncio.gather(sending, kill_some())
            async with connected(database_url) as conn:
                await over(conn, 120 + emails / 20)
                rows = await conn.fetch(EVENTS)
    print(f"\n{len(rows)} events, {len(at.arrivals)} requests, {sum(map(len, moody.taken.values()))} taken")
    assert {row["status"] for row in rows} == {"success"}
    told = [(json.loads(row["payload"])["type"]) for row in rows]
    assert sorted(told) == sorted([*KINDS] * emails)
    bodies = {bytes(row["payload"]) for row in rows}
    assert {body for found in moody.taken.values() for body in found} == bodies
    assert len(moody.taken) == len(rows)
    assert all(len(found) == 1 for found in moody.seen.values()), "one body for one id"


async def over(conn: asyncpg.Connection, seconds: float) -> None:
    """Return when nothing is open any more."""
    async with asyncio.timeout(seconds):
        while await conn.fetchval(OPEN):
            await asyncio.sleep(0.2)
