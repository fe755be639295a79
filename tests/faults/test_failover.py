"""Two nodes on two database servers: each of them dies, and nothing that was acknowledged is lost.

What the guide says of three machines (docs/guide/scale-out.md) is shown here, sentence by sentence.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kit.ledger import Comparison, Journal, acknowledged, arrivals, compare, open_work, states
from kit.load import Line, LoadClient, to_each
from kit.process import KEY, Served, connected, reconciled, served, settled
from kit.remote_servers import RemoteServers, remote_servers
from kit.replication import Pair, replicated
from repository.running import children_of

pytestmark = pytest.mark.sweep

MAILS = 120
RATE = 60
CONNECTIONS = 20
"""Sessions that a process opens to the relay at most, so mails that the loss of an outcome may double."""

SETTLED = 180.0
DESTINATIONS = [f"quay{number}.example" for number in range(3)]


@dataclass
class Fleet:
    """Two nodes with a data folder each, the database servers, and the server that takes all mail."""

    nodes: list[Served]
    clients: list[LoadClient]
    pair: Pair
    far: RemoteServers
    folder: Path

    async def load(self, mails: int) -> None:
        """Post so many mails, half of them at each node that has a client."""
        each = mails // len(self.clients)
        await asyncio.gather(
            *(
                client.post_many(each, RATE / len(self.clients), to_each(DESTINATIONS))
                for client in self.clients
            )
        )

    async def compared(self) -> Comparison:
        """What the client, the far server and the database say once nothing is open."""
        await settled(self.pair.url, SETTLED)
        accepted = acknowledged(self.folder / "ledger")
        async with connected(self.pair.url) as conn:
            found = compare(accepted, arrivals(self.far.journal), await states(conn))
            assert await open_work(conn) == 0
        await reconciled(self.pair.url)
        return found


@asynccontextmanager
async def fleet(folder: Path) -> AsyncIterator[Fleet]:
    async with AsyncExitStack() as stack:
        pair = stack.enter_context(replicated())
        far = stack.enter_context(remote_servers(folder / "far", {"127.0.0.1": {}}))
        shared = folder / "blobs"
        shared.mkdir()
        nodes: list[Served] = []
        for name in ("one", "two"):
            data = folder / name
            if nodes:
                data.mkdir(mode=0o700)
                shutil.copy2(nodes[0].data / "secret.key", data / "secret.key")
            nodes.append(
                stack.enter_context(
                    served(
                        data,
                        database_url=pair.url,
                        blob_url=f"file://{shared}",
                        route=f"relay:smtp://127.0.0.1:{far.port}",
                        processes="1",
                    )
                )
            )
        journal = Journal(folder / "ledger")
        clients = [
            await stack.enter_async_context(LoadClient(node.ready(), KEY, journal, lines=10))
            for node in nodes
        ]
        yield Fleet(nodes=nodes, clients=clients, pair=pair, far=far, folder=folder)


async def test_a_primary_that_dies_takes_nothing_with_it(tmp_path: Path) -> None:
    """DUR-01: killed under load, its standby promoted; the nodes find the new primary by themselves. Then the
    old one comes back as a standby, and the new one dies in its turn."""
    async with fleet(tmp_path) as at:
        for turn in (1, 2):
            load = asyncio.create_task(at.load(MAILS))
            await asyncio.sleep(MAILS / RATE / 2)
            at.pair.primary.kill()
            await asyncio.to_thread(at.pair.promote)
            await load
            found = await at.compared()
            found.assert_sound(doubled=turn * CONNECTIONS * len(at.nodes))
            assert found.accepted == turn * MAILS
            if turn == 1:
                await asyncio.to_thread(at.pair.rejoin)


@pytest.mark.slow
async def test_without_its_standby_a_primary_acknowledges_nothing(tmp_path: Path) -> None:
    """What only one server has is not acknowledged, nor is it when the request is repeated: both are refused
    in bounded time until the standby is back. Then the repeated request is answered, and mailed once."""
    async with fleet(tmp_path) as at:
        await at.load(MAILS // 4)
        at.pair.standby.kill()
        line = Line(*at.nodes[0].ready(), KEY)
        body = {
            "from": "notes@harbor.example",
            "to": "ann@quay1.example",
            "subject": "Berth berth-x",
            "text": "x",
        }
        try:
            async with asyncio.timeout(60):
                assert (await line.ask("POST", "/emails", body))[0] == 503
                for _ in range(2):
                    assert (await line.ask("POST", "/emails", body, idempotency_key="once"))[0] == 503
            await asyncio.to_thread(at.pair.standby.start)
            async with asyncio.timeout(60):
                while (answer := await line.ask("POST", "/emails", body, idempotency_key="once"))[0] != 200:
                    assert answer[0] == 503
                    await asyncio.sleep(0.2)
        finally:
            line.hang_up()
        await at.load(MAILS // 4)
        await settled(at.pair.url, SETTLED)
        await reconciled(at.pair.url)
        taken = Counter(arrival.token for arrival in arrivals(at.far.journal))
        assert {mail.token for mail in acknowledged(tmp_path / "ledger")} <= taken.keys()
        assert taken["berth-x"] <= 2, "once under the key; the first one may have been committed as well"


async def test_a_node_that_dies_is_taken_over(tmp_path: Path) -> None:
    """DUR-03: all processes of a node are killed at once; the other one delivers what it had."""
    async with fleet(tmp_path) as at:
        dying, client = at.nodes[0], at.clients.pop(0)
        load = asyncio.create_task(client.post_many(MAILS // 2, RATE, to_each(DESTINATIONS)))
        await at.load(MAILS // 2)
        await load
        family = [dying.process.pid, *children_of(dying.process.pid)]
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        await at.load(MAILS // 2)
        found = await at.compared()
        found.assert_sound(doubled=CONNECTIONS)
        assert found.accepted == MAILS // 2 * 3
