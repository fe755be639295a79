"""A Pillarbox with SMTP listeners in this process, and programs that submit to it.

async with submission(database_url, tmp_path) as (team, ports):
    async with ports.program(team.token) as client:
        reply = await client.send(message_bytes(subject="x"))
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any
from uuid import UUID

from kit.smtp_listener import Dialog, SmtpReply, bound, dialog
from kit.world import Team, World, world

NAMES = ("smtp", "submission", "submissions")


@dataclass(frozen=True)
class SubmissionPorts:
    """The ports of the SMTP listeners of a world."""

    smtp: int
    submission: int
    submissions: int

    @asynccontextmanager
    async def program(self, token: str, *, port: int | None = None) -> AsyncIterator[Dialog]:
        """Yield a session that is logged in with this key."""
        async with dialog(port or self.submission) as client:
            await client.ask("EHLO program.example")
            assert str(await client.ask(f"AUTH PLAIN {plain(token)}")) == "235 2.7.0"
            yield client


def plain(token: str, user: str = "resend") -> str:
    """Return the response of AUTH PLAIN."""
    return base64.b64encode(f"\0{user}\0{token}".encode()).decode()


@asynccontextmanager
async def submission(
    database_url: str, folder: Path, **settings: Any
) -> AsyncIterator[tuple[Team, SubmissionPorts]]:
    """Yield a team of a world with SMTP listeners; AUTH needs no TLS unless the settings say so."""
    sockets = {name: bound() for name in NAMES}
    ports = {name: bound_socket.getsockname()[1] for name, bound_socket in sockets.items()}
    given = {
        "smtp": f"127.0.0.1:{ports['smtp']}",
        "submission": f"127.0.0.1:{ports['submission']},tls://127.0.0.1:{ports['submissions']}",
        "smtp_login_needs_tls": "false",
        **settings,
    }
    descriptors = {name: bound_socket.detach() for name, bound_socket in sockets.items()}
    async with world(database_url, folder, listeners=descriptors, **given) as pillarbox:
        yield await pillarbox.team(), SubmissionPorts(**ports)


def message_bytes(
    *,
    sender: str | None = "Harbor <notes@harbor.example>",
    to: str | None = "ada@quay.example",
    subject: str | None = "Berth 12",
    text: str | None = "Ready",
    html: str | None = None,
    files: Sequence[tuple[str, bytes]] = (),
    **headers: str,
) -> bytes:
    """Return a message as a mail program writes it."""
    message = EmailMessage(policy=SMTP)
    for name, value in (("From", sender), ("To", to), ("Subject", subject)):
        if value is not None:
            message[name] = value
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    if text is not None:
        message.set_content(text)
    if html is not None:
        message.add_alternative(html, subtype="html") if text is not None else message.set_content(
            html, subtype="html"
        )
    for name, content in files:
        message.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    return bytes(message)


def queued_id(reply: SmtpReply) -> str:
    """Return the id of a submission that was accepted."""
    assert reply.code == 250, reply
    assert reply.text.startswith("2.0.0 Ok: queued as ")
    return str(UUID(reply.text.rpartition(" ")[2]))


__all__ = ["SubmissionPorts", "Team", "World", "message_bytes", "plain", "queued_id", "submission"]
