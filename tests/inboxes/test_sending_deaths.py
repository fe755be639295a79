"""A process dies while a draft is sent: the draft is never sent twice, and no accepted mail is lost."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from conftest import Databases
from kit.http_client import http_client
from kit.ledger import TOKEN, arrivals
from kit.process import KEY, WorkerProcesses, connected, first_team, reconciled, settled, worker_processes
from kit.remote_servers import RemoteServers, remote_servers

STATE = """
    SELECT d.email_id IS NOT NULL AS is_sent, i.drafts,
           (SELECT count(*) FROM emails e WHERE e.inbox_id = i.id AND e.subject = d.subject) AS emails,
           (SELECT count(*) FROM inbox_messages m WHERE m.subject = d.subject) AS messages,
           (SELECT count(*) FROM inbox_threads t WHERE t.subject = d.subject) AS threads
      FROM inbox_drafts d
      JOIN inboxes i ON i.id = d.inbox_id
     WHERE d.id = $1
"""

LOST = (httpx.TransportError,)


@dataclass
class Harbor:
    """Workers that come and go on one database, the server that their mail goes to, and an inbox."""

    workers: WorkerProcesses
    far: RemoteServers
    url: str
    inbox: str

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        async with http_client("http://{}:{}".format(*self.workers.at), KEY) as client:
            yield client

    async def draft(self, client: httpx.AsyncClient) -> tuple[str, str]:
        """A draft that can be sent: its path, and its subject."""
        subject = f"{TOKEN}{uuid4()}"
        body = {"to": "iris@quay.example", "subject": subject, "text": subject}
        made = await client.post(f"/inboxes/{self.inbox}/drafts", json=body)
        assert made.status_code == 201, made.text
        return f"/inboxes/{self.inbox}/drafts/{made.json()['id']}", subject

    async def state(self, path: str) -> tuple[bool, int, int, int]:
        """Whether the draft is sent; how many emails, messages and threads it has become."""
        async with connected(self.url) as conn:
            row = await conn.fetchrow(STATE, path.rpartition("/")[2])
            assert row is not None
            return row["is_sent"], row["emails"], row["messages"], row["threads"]

    def arrived(self) -> Counter[str]:
        return Counter(arrival.token for arrival in arrivals(self.far.journal))


@pytest.fixture(scope="module")
def harbor(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbor]:
    folder, url = tmp_path_factory.mktemp("harbor"), databases.fresh()
    asyncio.run(first_team(url))
    with (
        remote_servers(folder / "far", {"127.0.0.1": {}}) as far,
        worker_processes(
            url, folder, route=f"relay:smtp://127.0.0.1:{far.port}", inbound_require_dns="false"
        ) as workers,
    ):
        made = Harbor(workers, far, url, "")
        workers.start()
        made.inbox = asyncio.run(_an_inbox(made))
        workers.stop()
        yield made
    databases.drop(url)


async def _an_inbox(harbor: Harbor) -> str:
    capabilities = {"sending": "enabled", "receiving": "enabled"}
    async with harbor.client() as client:
        domain = await client.post("/domains", json={"name": "harbor.example", "capabilities": capabilities})
        assert domain.status_code == 201, domain.text
        made = await client.post("/inboxes", json={"email_address": "help@harbor.example"})
        assert made.status_code == 201, made.text
        return str(made.json()["id"])


async def sent_and_killed(harbor: Harbor, point: str) -> str:
    """The path of a draft whose send ended with the process, at this point; another process is up."""
    await asyncio.to_thread(harbor.workers.start, f"{point}=kill")
    async with harbor.client() as client:
        path, _ = await harbor.draft(client)
        with pytest.raises(LOST):
            await client.post(f"{path}/send", json={}, headers={"idempotency-key": path})
    assert await asyncio.to_thread(harbor.workers.died) == -signal.SIGKILL
    await asyncio.to_thread(harbor.workers.start)
    return path


@pytest.mark.parametrize("point", ["accept.within", "accept.before_commit", "accept.after_commit"])
async def test_a_send_that_was_cut_off_is_repeated_and_sends_once(
    harbor: Harbor, tmp_path: Path, point: str
) -> None:
    """inboxes.md 7.4: the draft, its email, its message and its thread are one commit."""
    path = await sent_and_killed(harbor, point)
    was_committed = point == "accept.after_commit"
    ones = (1, 1, 1) if was_committed else (0, 0, 0)
    assert await harbor.state(path) == (was_committed, *ones)
    async with harbor.client() as client:
        again = await client.post(f"{path}/send", json={}, headers={"idempotency-key": path})
        assert again.status_code == 200, again.text
        assert ("idempotent-replayed" in again.headers) is was_committed
        without_key = await client.post(f"{path}/send", json={})
        assert (without_key.status_code, without_key.json()["name"]) == (409, "conflict")
        subject = (await client.get(path)).json()["subject"]
    assert await harbor.state(path) == (True, 1, 1, 1)
    await settled(harbor.url, 30)
    assert await asyncio.to_thread(harbor.workers.stop) == 0
    assert harbor.arrived()[subject] == 1
    await reconciled(harbor.url)
