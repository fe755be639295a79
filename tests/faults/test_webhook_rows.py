"""Processes that die where events become rows: each event of the history is owed once (DUR-02)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from conftest import Databases
from kit.ledger import Journal
from kit.load import LoadClient
from kit.process import KEY, WorkerProcesses, connected, first_team, settled, worker_processes
from kit.remote_servers import remote_servers
from pillarbox.kernel.clock import SystemClock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.webhooks import queries

pytestmark = pytest.mark.sweep

KINDS = ("email.scheduled", "email.sent", "email.delivered", "email.bounced", "email.failed")

HISTORY = """
    SELECT email_id, 'email.' || kind AS kind, position
      FROM timeline
     WHERE team_id = $1 AND 'email.' || kind = ANY ($2::text[])
       AND (detail IS NULL OR detail ->> 'repeated' IS NULL)
"""
QUEUED = """
    SELECT subject_id, kind, position FROM webhook_deliveries WHERE team_id = $1 AND kind = ANY ($2::text[])
"""


@dataclass
class Yard:
    """Workers without a dispatcher, the server that their mail goes to, and a team with a webhook."""

    workers: WorkerProcesses
    url: str
    folder: Path
    team_id: UUID


async def subscribed(url: str) -> UUID:
    """A first team, whose webhook subscribes to all events of these mails."""
    await first_team(url)
    async with connected(url) as conn:
        team_id: UUID = await conn.fetchval("SELECT id FROM teams")
        stamp = Ids(SystemClock()).stamp()
        await queries.insert(
            TeamDb(conn, team_id), stamp.id, stamp.at, "https://hooks.harbor.example/", list(KINDS), b"none"
        )
        return team_id


@pytest.fixture(scope="module")
def yard(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder, url = tmp_path_factory.mktemp("webhook-rows"), databases.fresh()
    team_id = asyncio.run(subscribed(url))
    with remote_servers(folder / "far", {"127.0.0.1": {}}) as far:
        route = f"relay:smtp://127.0.0.1:{far.port}"
        with worker_processes(url, folder, route=route, roles="api,delivery,jobs") as workers:
            yield Yard(workers, url, folder, team_id)
    databases.drop(url)


@pytest.mark.parametrize(
    "fault",
    ["webhooks.rows=kill@1", "webhooks.rows=kill@2", "delivery.in_settle=kill", "delivery.after_dot=kill"],
)
async def test_what_dies_among_the_rows_of_events_loses_none_and_doubles_none(yard: Yard, fault: str) -> None:
    async with LoadClient(yard.workers.at, KEY, Journal(yard.folder / "ledger"), lines=1) as courier:
        await asyncio.to_thread(yard.workers.start, fault)
        posting = [asyncio.create_task(courier.post(["{token}@quay.example"])) for _ in range(6)]
        assert await asyncio.to_thread(yard.workers.died) == -9
        await asyncio.to_thread(yard.workers.start)
        await asyncio.gather(*posting)
        await settled(yard.url, 30)
        assert await asyncio.to_thread(yard.workers.stop) == 0
    async with connected(yard.url) as conn:
        history = Counter(tuple(row) for row in await conn.fetch(HISTORY, yard.team_id, KINDS))
        queued = Counter(tuple(row) for row in await conn.fetch(QUEUED, yard.team_id, KINDS))
        assert {kind for _, kind, _ in history} >= {"email.sent", "email.delivered"}
        assert queued == Counter({queued_key(*event): count for event, count in history.items()})


def queued_key(email_id: UUID, kind: str, position: int | None) -> tuple[UUID, str, int | None]:
    """`sent` is published for the email as a whole (contract decision 13)."""
    return email_id, kind, None if kind == "email.sent" else position
