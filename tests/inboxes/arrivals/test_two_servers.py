"""Two installations write to each other: each has one thread, however long it gets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import Databases
from kit.brought import INVARIANTS
from kit.inboxes import create, inbox_domain
from kit.world import Team, world
from pillarbox.emails.integrity.reconcile import reconcile
from pillarbox.kernel.network.listeners import SMTP

TURNS = 10
PATIENCE = 60.0


@dataclass(slots=True)
class Side:
    """A running Pillarbox with one inbox."""

    team: Team
    inbox: str

    async def thread(self, messages: int) -> dict[str, Any]:
        """The only thread, once it has so many messages."""
        async with asyncio.timeout(PATIENCE):
            while True:
                listed = (await self.team.get(f"/inboxes/{self.inbox}/threads?folders=inbox,sent")).json()[
                    "data"
                ]
                if sum([one["message_count"] for one in listed]) >= messages:
                    [thread] = listed
                    return dict(thread)
                await asyncio.sleep(0.02)

    async def emails(self, thread: dict[str, Any]) -> list[dict[str, Any]]:
        path = f"/inboxes/{self.inbox}/threads/{thread['id']}/emails"
        return list((await self.team.get(path)).json()["data"])


@asynccontextmanager
async def side(url: str, folder: Path, own: socket.socket, other: int, address: str) -> AsyncIterator[Side]:
    """An installation that listens at `own` and hands all mail to `other`."""
    async with world(
        url, folder, listeners={SMTP: own.detach()}, route=f"relay:smtp://127.0.0.1:{other}"
    ) as pillarbox:
        team = await pillarbox.team()
        await inbox_domain(team, address.partition("@")[2])
        yield Side(team, await create(team, address))


@pytest.fixture
def far_url(databases: Databases) -> Iterator[str]:
    """The database of the other installation."""
    url = databases.fresh()
    yield url
    databases.drop(url)


async def test_ten_turns_are_one_thread_on_each_side(database_url: str, far_url: str, tmp_path: Path) -> None:
    """inboxes.md 6.2, 7.4 and 9.4: by real SMTP; every message names the ones before it."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    near_port, far_port = (one.getsockname()[1] for one in sockets)
    async with (
        side(database_url, tmp_path / "near", sockets[0], far_port, "desk@harbor.example") as near,
        side(far_url, tmp_path / "far", sockets[1], near_port, "iris@quay.example") as far,
    ):
        fields = {"to": "iris@quay.example", "subject": "Berth 12", "text": "Is it free?"}
        draft = (await near.team.post(f"/inboxes/{near.inbox}/drafts", fields)).json()["id"]
        sent = await near.team.post(f"/inboxes/{near.inbox}/drafts/{draft}/send", {})
        assert sent.status_code == 200, sent.text
        for turn in range(1, TURNS):
            here = (near, far)[turn % 2]
            thread = await here.thread(turn)
            last = (await here.emails(thread))[-1]
            assert last["direction"] == "inbound"
            path = f"/inboxes/{here.inbox}/threads/{thread['id']}/emails/{last['id']}/reply"
            answer = await here.team.post(path, {"text": f"Turn {turn}"})
            assert answer.status_code == 200, answer.text
        for one in (near, far):
            thread = await one.thread(TURNS)
            emails = await one.emails(thread)
            assert [email["text"].strip() for email in emails[1:]] == [
                f"Turn {turn}" for turn in range(1, TURNS)
            ]
            assert sorted({email["direction"] for email in emails}) == ["inbound", "outbound"]
            assert (thread["message_count"], thread["folder"]) == (TURNS, "inbox")
            assert (await reconcile(one.team.world.pool, 10, INVARIANTS)).gaps == []
