"""A received email in `pillarbox emails show`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from pillarbox.delivery.commands.queue import team_names
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.terminal.answers import instant, say, show_json, show_table
from pillarbox.kernel.terminal.connect import CommandDatabase
from pillarbox.receiving import queries
from pillarbox.receiving.queries import AttachmentPart, ReceivedEmailRow


async def show_received(connected: CommandDatabase, email_id: UUID, *, json: bool) -> bool:
    """Show the received email of this id; False when there is none."""
    team_id = await queries.owner_of(connected.pool, email_id)
    if team_id is None:
        return False
    db = TeamDb(connected.pool, team_id)
    email = await queries.get(db, email_id)
    if email is None:
        return False
    parts = await queries.parts(db, email_id)
    if json:
        show_json(shape(team_id, email, parts))
        return True
    names = await team_names(connected)
    show_head(email, names.get(team_id, str(team_id)))
    if parts:
        say()
        show_table(
            ("Attachment", "Type", "Bytes"),
            [(p.filename or "(no name)", p.content_type, p.size) for p in parts],
        )
    return True


def show_head(email: ReceivedEmailRow, team: str) -> None:
    facts: list[tuple[str, object]] = [
        ("Email", f"{email.id} (received)"),
        ("Team", team),
        ("From", email.sender),
        ("To", ", ".join(texts(email.to_list))),
        ("Cc", ", ".join(texts(email.cc_list))),
        ("Subject", email.subject),
        ("Message-ID", email.message_id),
        ("Received", f"{instant(email.created_at)}, {email.size} bytes"),
        ("Envelope", f"<{email.mail_from}> to {', '.join(texts(email.recipients))}"),
        ("Client", email.client or "(handed in)"),
        ("Results", f"spf={email.spf} dkim={email.dkim} dmarc={email.dmarc}"),
        ("Spam", email.spam_reason or "no"),
        ("Divided", "" if email.complete else "not wholly: a limit left parts undivided"),
    ]
    for name, value in facts:
        if value != "":
            say(f"{name + ':':<13} {value}")


def shape(team_id: UUID, email: ReceivedEmailRow, parts: Sequence[AttachmentPart]) -> dict[str, Any]:
    return {
        "object": "received_email",
        "id": email.id,
        "team_id": team_id,
        "created_at": email.created_at,
        "from": email.sender,
        "to": texts(email.to_list),
        "cc": texts(email.cc_list),
        "bcc": texts(email.bcc_list),
        "reply_to": texts(email.reply_to_list),
        "subject": email.subject,
        "message_id": email.message_id,
        "received_for": texts(email.received_for),
        "mail_from": email.mail_from,
        "recipients": texts(email.recipients),
        "client": email.client,
        "spf": email.spf,
        "dkim": email.dkim,
        "dmarc": email.dmarc,
        "spam_reason": email.spam_reason,
        "size": email.size,
        "complete": email.complete,
        "attachments": [
            {"id": p.id, "filename": p.filename, "content_type": p.content_type, "size": p.size}
            for p in parts
        ],
    }


def texts(column: str | None) -> list[str]:
    return msgspec.json.decode(column, type=list[str]) if column else []
