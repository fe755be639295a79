"""Mail from several domains for an inbox whose trust is asked for, by real SMTP.

async with trusted_mail(database_url, tmp_path) as mail:
    trust = await mail.trust_of(letter("Iris Vale <iris@customer.example>"))
    assert trust["level"] == "unknown"
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from kit.inbound_client import InboundClient, inbound_client
from kit.inboxes import create, inbox_domain
from kit.manual_world import manual_world
from kit.world import Team
from kit.zone import Zone

NUMBERS = count(1)
HELP = "help@harbor.example"
IRIS = "Iris Vale <iris@customer.example>"

ZONE = """
    customer.example     TXT "v=spf1 ip4:127.0.0.0/8 -all"
    quay.example         TXT "v=spf1 ip4:127.0.0.0/8 -all"
    cust0mer.example     TXT "v=spf1 ip4:127.0.0.0/8 -all"
    stranger.example     TXT "v=spf1 ip4:127.0.0.0/8 -all"
    bank.example         TXT "v=spf1 -all"
    _dmarc.bank.example  TXT "v=DMARC1; p=reject"
"""


def letter(
    sender: str, *fields: str, subject: str = "Refund", text: str = "Where is it?", kind: str = "text/plain"
) -> bytes:
    """Return a message of this author."""
    # Without an id of its own the same message would be taken for a repetition.
    lines = [
        f"From: {sender}",
        f"To: {HELP}",
        f"Subject: {subject}",
        f"Message-ID: <{next(NUMBERS)}@x>",
        *fields,
    ]
    return "\r\n".join([*lines, f"Content-Type: {kind}; charset=utf-8", "", text, ""]).encode()


def attached(sender: str, filename: str, content_type: str, content: str) -> bytes:
    """Return a message with one attachment, whose content is base64."""
    body = "\r\n".join(
        (
            "--b",
            "Content-Type: text/plain",
            "",
            "See the file.",
            "--b",
            f"Content-Type: {content_type}",
            f'Content-Disposition: attachment; filename="{filename}"',
            "Content-Transfer-Encoding: base64",
            "",
            content,
            "--b--",
        )
    )
    head = f'From: {sender}\r\nTo: {HELP}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="b"'
    return f"{head}\r\n\r\n{body}\r\n".encode()


@dataclass(slots=True)
class TrustedMail:
    """An inbox of a team, and a mail server that has mail for it."""

    team: Team
    client: InboundClient
    inbox: str

    async def arrives(self, raw: bytes, mail_from: str | None = None) -> str:
        """Bring a message; return the path of its trust."""
        author = raw.split(b"\r\n", 1)[0].decode("utf-8", "replace").rpartition("From: ")[2]
        sender = author.rpartition("<")[2].rstrip(">") if mail_from is None else mail_from
        answer = await self.client.deliver(raw, [HELP], sender)
        assert answer.startswith("250"), answer
        email_id = answer.split()[-1]
        row = await self.team.world.pool.fetchrow(
            "SELECT thread_id FROM inbox_messages WHERE team_id = $1 AND id = $2", self.team.id, email_id
        )
        assert row is not None
        return f"/inboxes/{self.inbox}/threads/{row['thread_id']}/emails/{email_id}/trust"

    async def trust_of(self, raw: bytes, mail_from: str | None = None) -> dict[str, Any]:
        """Bring a message; return what is known about it."""
        answer = await self.team.get(await self.arrives(raw, mail_from))
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def writes_to(self, *addresses: str) -> str:
        """Send a message of the inbox; return the id of the email."""
        body = {"to": list(addresses), "subject": "Hello", "text": "Hello"}
        draft = (await self.team.post(f"/inboxes/{self.inbox}/drafts", body)).json()["id"]
        sent = await self.team.post(f"/inboxes/{self.inbox}/drafts/{draft}/send")
        assert sent.status_code == 200, sent.text
        return str(sent.json()["email_id"])


def codes(trust: dict[str, Any]) -> Sequence[str]:
    """Return the codes of the reasons."""
    return [reason["code"] for reason in trust["reasons"]]


def detail(trust: dict[str, Any], code: str) -> dict[str, Any]:
    """Return the detail of the one reason with this code."""
    [found] = [reason for reason in trust["reasons"] if reason["code"] == code]
    return dict(found["detail"])


@asynccontextmanager
async def trusted_mail(database_url: str, folder: Path) -> AsyncIterator[TrustedMail]:
    async with (
        manual_world(database_url, folder, zone=Zone(ZONE)) as pillarbox,
        inbound_client(pillarbox) as client,
    ):
        team = await pillarbox.team()
        await inbox_domain(team)
        yield TrustedMail(team, client, await create(team, HELP, name="Harbor Desk"))
