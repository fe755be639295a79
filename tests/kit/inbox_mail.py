"""Mail from outside for inboxes, by real SMTP.

async with inbox_mail(database_url, tmp_path) as mail:
    inbox_id = await mail.inbox("help@harbor.example")
    await mail.brings("help@harbor.example", subject="Refund", message_id="a@x")
    [thread] = await mail.threads(inbox_id)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.inbound_client import InboundClient, inbound_client
from kit.inboxes import create, inbox_domain
from kit.world import Team, world
from kit.zone import Zone

CUSTOMER = "iris@customer.example"
FORGED = "ada@bank.example"
"""Mail of this author is spam: its domain asks for it to be refused."""

ZONE = """
    _dmarc.bank.example  TXT  "v=DMARC1; p=reject"
"""


@dataclass(slots=True)
class InboxMail:
    """A team with a domain for inboxes, and a mail server that has mail for it."""

    team: Team
    client: InboundClient

    async def inbox(self, address: str, **fields: Any) -> str:
        return await create(self.team, address, **fields)

    async def brings(self, *to: str, envelope_sender: str | None = None, **fields: Any) -> str:
        """Bring a message (`letter`) to these addresses; return the answer to the end of its text."""
        sender = fields.get("sender", CUSTOMER) if envelope_sender is None else envelope_sender
        return await self.client.deliver(letter(to=fields.pop("shown_to", to[0]), **fields), to, sender)

    async def threads(self, inbox: str, query: str = "") -> list[dict[str, Any]]:
        """Return the threads, the newest first; without a query those of the inbox."""
        return await self._listed(f"/inboxes/{inbox}/threads{query}")

    async def emails(self, inbox: str, thread: Mapping[str, Any]) -> list[dict[str, Any]]:
        return await self._listed(f"/inboxes/{inbox}/threads/{thread['id']}/emails")

    async def received(self) -> list[dict[str, Any]]:
        return await self._listed("/emails/receiving")

    async def _listed(self, path: str) -> list[dict[str, Any]]:
        answer = await self.team.get(path)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["data"])


def letter(
    *,
    to: str,
    subject: str | None = "Refund",
    sender: str = CUSTOMER,
    message_id: str | None = None,
    answers: str | None = None,
    references: str | None = None,
    headers: Sequence[str] = (),
    text: str = "Where is it?",
) -> bytes:
    """Return a message; ids may be given with or without brackets, as they shall stand there."""
    lines = [f"From: Iris Vale <{sender}>", f"To: {to}", *headers]
    fields = {
        "Subject": subject,
        "Message-ID": message_id,
        "In-Reply-To": answers,
        "References": references,
    }
    lines += [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join([*lines, "", text, ""]).encode()


@asynccontextmanager
async def inbox_mail(database_url: str, folder: Path, **settings: Any) -> AsyncIterator[InboxMail]:
    async with (
        world(database_url, folder, started=False, zone=Zone(ZONE), **settings) as pillarbox,
        inbound_client(pillarbox) as client,
    ):
        team = await pillarbox.team()
        await inbox_domain(team)
        yield InboxMail(team, client)
