"""Processes and databases that die under load, and come back: nothing is lost, hardly anything goes twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit.ledger import Comparison, Journal, acknowledged, arrivals, compare, open_work, states, uncertain
from kit.load import LoadClient, to_each
from kit.process import (
    KEY,
    Served,
    connected,
    first_team,
    reconciled,
    served,
    settled,
    verified,
    worker_processes,
)
from kit.remote_servers import Behaviour, RemoteServers, remote_servers
from repository.running import Lines

CONNECTIONS = 20
"""Sessions that a process opens to the relay at most, so mails that its death may double."""

SUSPECTS_WAIT = 450.0
"""Seconds in which even a mail goes out that has lost three processes by chance."""

PROCESSES = 2
DESTINATIONS = [f"quay{number}.example" for number in range(5)]


@dataclass(frozen=True)
class Size:
    """How large a run is."""

    mails: int
    rate: float
    every: float
    kills: int
    postgres_kills: int
    restarts: int


PATIENCE = 60.0
SMALL = Size(mails=300, rate=150, every=0.6, kills=3, postgres_kills=1, restarts=3)
LARGE = Size(mails=20_000, rate=150, every=3.0, kills=44, postgres_kills=10, restarts=50)
SIZES = [pytest.param(SMALL, id="small"), pytest.param(LARGE, id="large", marks=pytest.mark.slow)]


@dataclass
class Harbor:
    """A running Pillarbox, a client with its ledger, and the mail server that all mail goes to."""

    pillarbox: Served
    courier: LoadClient
    far: RemoteServers
    folder: Path
    url: str

    async def compared(self, seconds: float) -> Comparison:
        """What the three witnesses say once nothing is open any more."""
        took = await settled(self.url, seconds)
        accepted = acknowledged(self.courier.journal.path)
        async with connected(self.url) as conn:
            found = compare(accepted, arrivals(self.far.journal), await states(conn))
            assert await open_work(conn) == 0
            assert found.doubled.keys() <= await uncertain(conn), "a second delivery that nobody counted"
        await reconciled(self.url)
        print(f"\n{found}; settled {took:.1f} s after the last; {self.courier.tally}")
        return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@asynccontextmanager
async def harbor(
    folder: Path, *, temper: Behaviour | None = None, url: str | None = None, fault: str = "", **settings: str
) -> AsyncIterator[Harbor]:
    """Everything running, on a database of its own unless `url` names one."""
    http = f"127.0.0.1:{free_port()}"
    if url is not None:
        settings["database_url"] = url
    with remote_servers(folder / "far", {"127.0.0.1": temper or {}}) as far:
        route = f"relay:smtp://127.0.0.1:{far.port}"
        with served(
            folder / "data", fault=fault, http=http, route=route, processes=str(PROCESSES), **settings
        ) as running:
            async with LoadClient(running.ready(), KEY, Journal(folder / "ledger")) as courier:
                yield Harbor(
                    pillarbox=running, courier=courier, far=far, folder=folder, url=running.database_url
                )


async def regularly(deed: Callable[[], Awaitable[None]], every: float, times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(every)
        await deed()


async def waited_for(lines: Lines, part: str, count: int) -> None:
    await asyncio.to_thread(lines.wait_for, part, count=count)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.slow
async def test_killed_workers_lose_nothing(tmp_path: Path, size: Size) -> None:
    """DUR-01, DUR-03, DUR-04: a random worker dies every few seconds, then the database does."""
    chance = random.Random(7)
    async with harbor(tmp_path) as at:

        async def kill() -> None:
            at.pillarbox.kill_a_worker(chance)

        load = at.courier.post_many(size.mails, size.rate, to_each(DESTINATIONS))
        await asyncio.gather(load, regularly(kill, size.every, size.kills))
        found = await at.compared(SUSPECTS_WAIT)
        found.assert_sound(doubled=size.kills * CONNECTIONS)
        assert found.accepted == size.mails

        restarted = at.pillarbox.log.all

        async def kill_postgres() -> None:
            before = sum("postgres.restarted" in line for line in restarted)
            os.kill(at.pillarbox.postmaster(), signal.SIGKILL)
            await waited_for(at.pillarbox.log, "postgres.restarted", before + 1)

        mails = min(size.mails // 2, size.postgres_kills * 300)
        load = at.courier.post_many(mails, size.rate, to_each(DESTINATIONS))
        await asyncio.gather(load, regularly(kill_postgres, size.every, size.postgres_kills))
        found = await at.compared(SUSPECTS_WAIT)
        found.assert_sound(doubled=size.kills * CONNECTIONS + size.postgres_kills * CONNECTIONS * PROCESSES)
        assert found.accepted == size.mails + mails
    if size is LARGE:
        verified(tmp_path / "data")


@pytest.mark.parametrize("rounds", [SMALL.restarts, pytest.param(LARGE.restarts, marks=pytest.mark.slow)])
async def test_workers_that_are_asked_to_stop_lose_and_double_nothing(
    database_url: str, tmp_path: Path, rounds: int
) -> None:
    """OPS-03, DUR-04: what is on the wire is finished, what waits is free for the next worker."""
    await first_team(database_url)
    with (
        remote_servers(tmp_path / "far", {"127.0.0.1": {"DOT": "tarpit:0.1"}}) as far,
        worker_processes(database_url, tmp_path, route=f"relay:smtp://127.0.0.1:{far.port}") as workers,
    ):
        async with LoadClient(workers.at, KEY, Journal(tmp_path / "ledger")) as courier:
            await asyncio.to_thread(workers.start)
            load = asyncio.create_task(courier.post_many(rounds * 100, 150, to_each(DESTINATIONS)))
            for _ in range(rounds):
                await asyncio.sleep(SMALL.every)
                assert await asyncio.to_thread(workers.stop) == 0
                await asyncio.to_thread(workers.start)
            await load
            await settled(database_url, 60)
            assert await asyncio.to_thread(workers.stop) == 0
    async with connected(database_url) as conn:
        accepted = acknowledged(tmp_path / "ledger")
        found = compare(accepted, arrivals(far.journal), await states(conn))
        print(f"\n{found}; {courier.tally}")
        found.assert_sound(doubled=0)
        assert found.accepted == rounds * 100
        assert await open_work(conn) == 0
    await reconciled(database_url)


async def test_signals_that_are_no_kill_lose_and_double_nothing(tmp_path: Path) -> None:
    """OPS-03: SIGHUP to every process while mail is on the wire, then a stop by SIGQUIT, and a start."""
    http = f"127.0.0.1:{free_port()}"
    with remote_servers(tmp_path / "far", {"127.0.0.1": {"DOT": "tarpit:0.1"}}) as far:
        settings = {"http": http, "route": f"relay:smtp://127.0.0.1:{far.port}"}
        host, _, port = http.partition(":")
        async with LoadClient((host, int(port)), KEY, Journal(tmp_path / "ledger")) as courier:
            with served(tmp_path / "data", **settings) as first:
                load = asyncio.create_task(courier.post_many(400, 150, to_each(DESTINATIONS)))
                for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
                    await asyncio.sleep(SMALL.every / 3)
                    workers = first.workers()
                    for pid in (first.process.pid, *workers):
                        os.kill(pid, number)
                assert first.workers() == workers
                first.process.send_signal(signal.SIGQUIT)
                assert await asyncio.to_thread(first.process.wait, PATIENCE) == 0
            with served(tmp_path / "data", **settings) as last:
                await load
                url = last.database_url
                await settled(url, PATIENCE)
                async with connected(url) as conn:
                    found = compare(
                        acknowledged(tmp_path / "ledger"), arrivals(far.journal), await states(conn)
                    )
                print(f"\n{found}; {courier.tally}")
                found.assert_sound(doubled=0)
                assert found.accepted == 400
                await reconciled(url)


@pytest.mark.slow
async def test_restarts_of_everything_lose_and_double_nothing(tmp_path: Path) -> None:
    """The same with supervisor, two workers and the database; the client cannot connect."""
    http = f"127.0.0.1:{free_port()}"
    with remote_servers(tmp_path / "far", {"127.0.0.1": {"DOT": "tarpit:0.05"}}) as far:
        settings = {"http": http, "route": f"relay:smtp://127.0.0.1:{far.port}"}
        host, _, port = http.partition(":")
        async with LoadClient((host, int(port)), KEY, Journal(tmp_path / "ledger")) as courier:
            over = asyncio.Event()
            load = asyncio.create_task(courier.post_until(over, 0.1, to_each(DESTINATIONS)))
            for _ in range(LARGE.restarts):
                with served(tmp_path / "data", **settings) as running:
                    await asyncio.sleep(LARGE.every / 2)
                    assert await asyncio.to_thread(running.stop) == 0
            with served(tmp_path / "data", **settings) as last:
                over.set()
                sent = await load
                found = await Harbor(
                    pillarbox=last, courier=courier, far=far, folder=tmp_path, url=last.database_url
                ).compared(60)
                found.assert_sound(doubled=0)
                assert found.accepted == sent
    verified(tmp_path / "data")
