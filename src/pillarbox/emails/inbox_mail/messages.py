"""Sent emails as messages of an inbox: their bodies and attachments, and until when they are kept.

An email that an inbox has is not removed by age, nor are its bodies (docs/decisions/0091).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from pillarbox.emails.inbox_mail import queries
from pillarbox.emails.inbox_mail.queries import EmailBodies as EmailBodies
from pillarbox.emails.inbox_mail.queries import EmailFile as EmailFile
from pillarbox.kernel.postgres.database import TeamDb

FILE_KIND: Final = "attachment"
"""The kind of their signed files."""

GONE: Final = EmailBodies(None, None)


async def sizes(db: TeamDb, ids: Sequence[UUID]) -> dict[UUID, int]:
    """Return how many octets the bodies of each email have, of those that exist."""
    return await queries.sizes(db, ids) if ids else {}


async def bodies(db: TeamDb, email_id: UUID) -> EmailBodies:
    """Return the bodies of an email; empty ones where it is gone."""
    return await queries.bodies(db, email_id) or GONE


async def attachments(db: TeamDb, ids: Sequence[UUID]) -> dict[UUID, list[EmailFile]]:
    """Return the attachments of each email that has some."""
    found: dict[UUID, list[EmailFile]] = {}
    if ids:
        for attached in await queries.attachments(db, ids):
            found.setdefault(attached.email_id, []).append(attached)
    return found


async def release(db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> None:
    """Note that the inbox does not have these emails any more."""
    if ids:
        await queries.release(db, inbox_id, ids)
