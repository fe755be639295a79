"""Mail from outside: a world's inbound SMTP listener on a free loopback port, and a client of it.

async with inbound_client(pillarbox) as client:
    answer = await client.deliver(raw, to=["help@harbor.example"])
    assert answer.startswith("250")
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kit.world import Team, World
from pillarbox.mail.smtp.conversation import SessionTimeouts
from pillarbox.mail.smtp.listener import ListenerOptions, SmtpListener
from pillarbox.mail.smtp.session import SessionHandler
from pillarbox.receiving.addresses import AddressLookup
from pillarbox.receiving.receive import MessageReceiver
from pillarbox.receiving.reports.return_path import ReturnPath
from pillarbox.smtp.inbound import InboundHandler

HOSTNAME = "mx.pillar.example"
AT_ONCE = SessionTimeouts(greeting=0.0)


class NoLimits:
    """Client limits that refuse nobody."""

    def admit(self, peer: str) -> bool:
        return True

    def left(self, peer: str) -> None: ...

    def may_login(self, peer: str) -> bool:
        return True

    def login_failed(self, peer: str) -> None: ...


class InboundSession:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def begin(cls, port: int, helo: str = "quay.example") -> InboundSession:
        made = cls(*await asyncio.open_connection("127.0.0.1", port))
        assert (await made.heard()).startswith("220")
        assert (await made.say(f"EHLO {helo}")).startswith("250")
        return made

    async def heard(self) -> str:
        """Return one whole reply; several lines are joined by line ends. "" when the connection is gone."""
        lines = []
        while line := (await self._reader.readline()).decode("ascii").rstrip("\r\n"):
            lines.append(line)
            if line[3:4] != "-":
                break
        return "\n".join(lines)

    async def say(self, line: str) -> str:
        self._writer.write(f"{line}\r\n".encode())
        return await self.heard()

    async def offer(
        self, to: Sequence[str], sender: str = "ada@quay.example", options: str = ""
    ) -> list[str]:
        """Send MAIL and RCPT; return the answers to RCPT."""
        first = await self.say(f"MAIL FROM:<{sender}>{options}")
        assert first.startswith("250"), first
        return [await self.say(f"RCPT TO:<{address}>") for address in to]

    async def text(self, raw: bytes) -> str:
        """Send DATA and a message; return the answer to its end."""
        go_ahead = await self.say("DATA")
        if not go_ahead.startswith("354"):
            return go_ahead
        if not raw.endswith(b"\r\n"):
            raw += b"\r\n"
        stuffed = raw.replace(b"\r\n.", b"\r\n..")
        self._writer.write((b"." if stuffed.startswith(b".") else b"") + stuffed + b".\r\n")
        return await self.heard()

    async def end(self) -> None:
        self._writer.close()
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)


@dataclass(slots=True)
class InboundClient:
    """The listener's port, and one connection to it that stays open."""

    port: int
    handler: SessionHandler
    _open: list[InboundSession] = field(default_factory=list)
    _own: InboundSession | None = None

    async def connect(self, helo: str = "quay.example") -> InboundSession:
        made = await InboundSession.begin(self.port, helo)
        self._open.append(made)
        return made

    async def deliver(
        self, raw: bytes, to: Sequence[str], sender: str = "ada@quay.example", options: str = ""
    ) -> str:
        """Send a mail; return the answer to the end of the text, or the first refusal of a recipient."""
        dialogue = self._own = self._own or await self.connect()
        answers = await dialogue.offer(to, sender, options)
        refused = [answer for answer in answers if not answer.startswith("250")]
        if refused:
            await dialogue.say("RSET")
            return refused[0]
        return await dialogue.text(raw)

    async def close(self) -> None:
        for dialogue in self._open:
            await dialogue.end()


def loopback_socket() -> socket.socket:
    """Return a socket bound to a free port."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound


@asynccontextmanager
async def inbound_client(
    pillarbox: World, receiving: MessageReceiver | None = None, bound: socket.socket | None = None
) -> AsyncIterator[InboundClient]:
    """Yield a client of the inbound listener of a world, with the world's `MessageReceiver` or another one,
    on a free port or the one that is bound."""
    app = pillarbox.app
    handler = InboundHandler(
        receiving or app.need(MessageReceiver),
        app.need(AddressLookup),
        app.need(ReturnPath).take,
        app.kit.clock,
    )
    options = ListenerOptions(HOSTNAME, 52_428_800, timeouts=AT_ONCE)
    listener = SmtpListener(handler, options, NoLimits())
    if bound is None:
        bound = loopback_socket()
    await listener.open(bound)
    client = InboundClient(bound.getsockname()[1], handler)
    try:
        yield client
    finally:
        await client.close()
        await listener.stop(5)


async def receiving_domain(team: Team, name: str = "harbor.example") -> str:
    """Return a domain of the team that may receive."""
    domain_id = await team.domain(name)
    answer = await team.call(
        "PATCH", f"/domains/{domain_id}", {"capabilities": {"sending": "enabled", "receiving": "enabled"}}
    )
    assert answer.status_code == 200, answer.text
    await team.world.pool.execute(
        "UPDATE domains SET receiving_ok = true WHERE team_id = $1 AND name = $2", team.id, name
    )
    return domain_id
