"""Two servers talk to each other by real SMTP, and each has one thread of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Any

import pytest

from conftest import Databases
from kit.inbound_client import inbound_client, loopback_socket
from kit.inboxes import create, inbox_domain
from kit.world import Team, world

TURNS = 10


@dataclass(slots=True)
class Desk:
    """An inbox of a server."""

    team: Team
    inbox: str
    address: str

    async def threads(self) -> list[dict[str, Any]]:
        path = f"/inboxes/{self.inbox}/threads?folders=inbox,archive,sent,spam,trash"
        return list((await self.team.get(path)).json()["data"])

    async def emails(self, thread: dict[str, Any]) -> list[dict[str, Any]]:
        path = f"/inboxes/{self.inbox}/threads/{thread['id']}/emails?limit=100"
        return list((await self.team.get(path)).json()["data"])

    async def begins(self, to: str, subject: str) -> None:
        body = {"to": to, "subject": subject, "text": "Hello"}
        draft = (await self.team.post(f"/inboxes/{self.inbox}/drafts", body)).json()["id"]
        sent = await self.team.post(f"/inboxes/{self.inbox}/drafts/{draft}/send")
        assert sent.status_code == 200, sent.text
        await self.team.world.turn()

    async def answers(self, text: str, **fields: Any) -> None:
        """A reply to the newest message."""
        [thread] = await self.threads()
        last = (await self.emails(thread))[-1]
        assert last["direction"] == "inbound"
        path = f"/inboxes/{self.inbox}/threads/{thread['id']}/emails/{last['id']}/reply"
        sent = await self.team.post(path, {"text": text, **fields})
        assert sent.status_code == 200, sent.text
        await self.team.world.turn()


@asynccontextmanager
async def desk(url: str, folder: Path, address: str, own: socket, other: socket) -> AsyncIterator[Desk]:
    """A server that takes mail on one socket and hands its own to the server behind the other."""
    route = f"relay:smtp://127.0.0.1:{other.getsockname()[1]}"
    async with (
        world(url, folder, started=False, route=route, require_verified_domain="never") as pillarbox,
        inbound_client(pillarbox, bound=own),
    ):
        team = await pillarbox.team()
        await inbox_domain(team, address.rpartition("@")[2])
        yield Desk(team, await create(team, address, from_name="The desk"), address)


@pytest.fixture
def urls(databases: Databases) -> Iterator[list[str]]:
    """Two databases."""
    made = [databases.fresh() for _ in range(2)]
    yield made
    for url in made:
        databases.drop(url)


async def test_ten_turns_between_two_servers_are_one_thread_on_each(urls: list[str], tmp_path: Path) -> None:
    """inboxes.md 6.2 and 9.4: each side finds the other's answers by their ids."""
    sockets = loopback_socket(), loopback_socket()
    async with AsyncExitStack() as stack:
        harbor = await stack.enter_async_context(
            desk(urls[0], tmp_path / "harbor", "help@harbor.example", *sockets)
        )
        quay = await stack.enter_async_context(
            desk(urls[1], tmp_path / "quay", "desk@quay.example", sockets[1], sockets[0])
        )
        await harbor.begins(quay.address, "Berth 12")
        for turn in range(1, TURNS):
            side = quay if turn % 2 else harbor
            await side.answers(f"turn {turn}", reply_all=turn % 3 == 0)
        for side, other in ((harbor, quay), (quay, harbor)):
            [thread] = await side.threads()
            emails = await side.emails(thread)
            assert (thread["subject"], thread["message_count"], thread["folder"]) == (
                "Berth 12",
                TURNS,
                "inbox",
            )
            assert [email["text"].strip() for email in emails] == [
                "Hello",
                *[f"turn {turn}" for turn in range(1, TURNS)],
            ]
            begins = "outbound" if side is harbor else "inbound"
            assert [email["direction"] == begins for email in emails] == [n % 2 == 0 for n in range(TURNS)]
            inbound = [email for email in emails if email["direction"] == "inbound"]
            assert {email["from"] for email in inbound} == {f"The desk <{other.address}>"}
            assert {email["subject"] for email in emails} == {"Berth 12", "Re: Berth 12"}


async def test_what_an_inbox_sends_to_itself_comes_in_once(database_url: str, tmp_path: Path) -> None:
    """inboxes.md 9.3, by real SMTP: one message, inbound and unread; there is nobody else to answer."""
    own = loopback_socket()
    async with desk(database_url, tmp_path, "help@harbor.example", own, own) as harbor:
        await harbor.begins(harbor.address, "Note to ourselves")
        [thread] = await harbor.threads()
        [email] = await harbor.emails(thread)
        assert (email["direction"], email["read"], email["text"]) == ("inbound", False, "Hello")
        assert (thread["folder"], thread["message_count"], thread["read"]) == ("inbox", 1, False)
        path = f"/inboxes/{harbor.inbox}/threads/{thread['id']}/emails/{email['id']}"
        alone = await harbor.team.post(f"{path}/reply", {"text": "x"})
        assert (alone.status_code, alone.json()["name"]) == (422, "validation_error")
        forwarded = await harbor.team.post(f"{path}/forward", {"to": "ada@quay.example"})
        assert forwarded.status_code == 200, forwarded.text
