"""Processes that freeze and databases that are out of reach, while mail is on the wire."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from kit.clock import ManualClock
from kit.database_link import DatabaseLink, database_link
from kit.ledger import (
    Comparison,
    Journal,
    acknowledged,
    arrivals,
    compare,
    lines_of,
    open_work,
    states,
    uncertain,
)
from kit.load import LoadClient, to_each
from kit.process import KEY, WorkerProcesses, connected, first_team, reconciled, settled, worker_processes
from kit.remote_servers import Behaviour, RemoteServers, remote_servers
from kit.smtp_sink import USUAL, Sink
from kit.world import world

pytestmark = pytest.mark.sweep

LEASE = 15.0
LOAD_SECONDS = 60.0
CONNECTIONS = 20
DESTINATIONS = [f"quay{number}.example" for number in range(5)]


@dataclass
class Pair:
    """Two workers on one database, one healthy and one that something befalls."""

    workers: WorkerProcesses
    courier: LoadClient
    far: RemoteServers
    url: str
    wire: DatabaseLink

    async def compared(self, seconds: float) -> Comparison:
        """What the three witnesses say once nothing is open any more."""
        await settled(self.url, seconds)
        async with connected(self.url) as conn:
            found = compare(
                acknowledged(self.courier.journal.path), arrivals(self.far.journal), await states(conn)
            )
            assert await open_work(conn) == 0
            assert found.doubled.keys() <= await uncertain(conn), "a second delivery that nobody counted"
        await reconciled(self.url)
        print(f"\n{found}; {self.courier.tally}")
        return found

    async def taken(self, count: int) -> None:
        """Wait until the far server has taken so many mails."""
        while sum(1 for _ in lines_of(self.far.journal)) < count:
            await asyncio.sleep(0.02)


@asynccontextmanager
async def pair(url: str, folder: Path, temper: Behaviour) -> AsyncIterator[Pair]:
    await first_team(url)
    async with database_link(url) as wire:
        with (
            remote_servers(folder / "far", {"127.0.0.1": temper}) as far,
            worker_processes(wire.url, folder, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
        ):
            async with LoadClient(workers.at, KEY, Journal(folder / "ledger")) as courier:
                yield Pair(workers=workers, courier=courier, far=far, url=url, wire=wire)


def is_stopped(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("seconds", [2.0, pytest.param(LEASE * 1.5, marks=pytest.mark.slow)])
async def test_a_database_that_is_cut_off_while_mail_is_on_the_wire(
    database_url: str, tmp_path: Path, seconds: float
) -> None:
    """DUR-01, DUR-10: outcomes wait for the database; within the lease nothing goes twice."""
    async with pair(database_url, tmp_path, {"DOT": "tarpit:0.3"}) as at:
        await asyncio.to_thread(at.workers.start)
        await asyncio.to_thread(at.workers.start, place=1)
        load = asyncio.create_task(at.courier.post_many(200, 100, to_each(DESTINATIONS)))
        await at.taken(20)
        at.wire.cut()
        await asyncio.sleep(seconds)
        await at.wire.open()
        await load
        found = await at.compared(LEASE + 60)
        found.assert_sound(doubled=0 if seconds < LEASE else 2 * CONNECTIONS)
        assert found.accepted == 200
        for place in (0, 1):
            assert await asyncio.to_thread(at.workers.stop, place=place) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [LEASE / 2, LEASE * 2.5])
async def test_a_database_that_says_nothing_while_mail_is_on_the_wire(
    database_url: str, tmp_path: Path, seconds: float
) -> None:
    """The same where no session breaks: everybody waits, and what was waited for still counts."""
    async with pair(database_url, tmp_path, {"DOT": "tarpit:0.3"}) as at:
        await asyncio.to_thread(at.workers.start)
        await asyncio.to_thread(at.workers.start, place=1)
        load = asyncio.create_task(at.courier.post_many(200, 100, to_each(DESTINATIONS)))
        await at.taken(20)
        at.wire.stall()
        await asyncio.sleep(seconds)
        at.wire.flow()
        await load
        found = await at.compared(LEASE + 60)
        found.assert_sound(doubled=0 if seconds < LEASE else 2 * CONNECTIONS)
        assert found.accepted == 200


FROZEN = (
    "accept.before_commit",
    "accept.after_commit",
    "delivery.claimed",
    "delivery.after_mail",
    "delivery.before_dot",
    "delivery.after_dot",
    "delivery.after_250",
    "delivery.in_settle",
)


@pytest.mark.slow
@pytest.mark.parametrize("point", FROZEN)
async def test_a_frozen_process_holds_nothing_up_and_sends_nothing_twice(
    database_url: str, tmp_path: Path, point: str
) -> None:
    """DUR-03: after the lease another process does the work; the frozen one wakes up and knows it."""
    async with pair(database_url, tmp_path, {"DATA": "tarpit:0.2"}) as at:
        frozen = await asyncio.to_thread(at.workers.start, f"{point}=freeze@15")
        await asyncio.to_thread(at.workers.start, place=1)
        load = asyncio.create_task(at.courier.post_many(300, 50, to_each(DESTINATIONS)))
        async with asyncio.timeout(LOAD_SECONDS):
            while not is_stopped(frozen):
                await asyncio.sleep(0.05)
        await load
        took = await settled(at.url, 2 * LEASE + 30)
        print(f"\nall settled {took:.1f} s after the load while the process was frozen")
        await asyncio.sleep(max(0.0, 5 * LEASE - took))
        os.kill(frozen, signal.SIGCONT)
        await asyncio.sleep(5)
        found = await at.compared(30)
        found.assert_sound(doubled=CONNECTIONS)
        assert found.accepted == 300
        for place in (0, 1):
            assert await asyncio.to_thread(at.workers.stop, place=place) == 0


@pytest.mark.slow
async def test_processes_that_freeze_in_mid_data_at_random(database_url: str, tmp_path: Path) -> None:
    """DUR-03: SIGSTOP for five lease times, one process after the other, with their sessions in DATA."""
    async with pair(database_url, tmp_path, {"DATA": "tarpit:1"}) as at:
        pids = [await asyncio.to_thread(at.workers.start, place=place) for place in (0, 1)]
        for pid in pids:
            load = asyncio.create_task(at.courier.post_many(300, 50, to_each(DESTINATIONS)))
            await asyncio.sleep(3)
            os.kill(pid, signal.SIGSTOP)
            await load
            await settled(at.url, 3 * LEASE)
            await asyncio.sleep(4 * LEASE)
            os.kill(pid, signal.SIGCONT)
            await asyncio.sleep(2)
        found = await at.compared(30)
        found.assert_sound(doubled=2 * CONNECTIONS)
        assert found.accepted == 600


async def test_an_outcome_that_comes_when_another_has_the_item_is_marked(
    database_url: str, tmp_path: Path
) -> None:
    """DUR-04: the other process may be sending it right now, so it counts as uncertain."""
    async with (
        Sink() as sink,
        world(
            database_url,
            tmp_path,
            clock=ManualClock(),
            started=False,
            route=f"relay:smtp://127.0.0.1:{sink.port}",
            require_verified_domain="never",
        ) as pillarbox,
    ):
        gate = asyncio.Event()
        sink.script("DOT", (gate, USUAL))
        team = await pillarbox.team()
        email = await team.send()
        pillarbox.clock.advance(0.001)
        await pillarbox.engine.look()
        await sink.commands("DATA")
        taken_over = "UPDATE deliveries SET owner = $2, attempt = attempt + 1 WHERE team_id = $1"
        await team.db.run(taken_over, UUID(int=7))
        gate.set()
        await pillarbox.engine.idle()
        last = (await team.events(email))[-1]
        assert (last["event"], last["uncertain"]) == ("delivered", True)
        assert await open_work(pillarbox.pool) == 0
