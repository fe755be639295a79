"""SQL of sent emails that are messages of an inbox (inboxes.md 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

SIZES = """
    SELECT e.id, coalesce(octet_length(c.html), 0) + coalesce(octet_length(c.text), 0) AS octets
      FROM emails e
      JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
     WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[])
"""

BODIES = """
    SELECT c.html, c.text
      FROM emails e
      JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
     WHERE e.team_id = $1 AND e.id = $2
"""

ATTACHMENTS = """
    SELECT e.id AS email_id, a.id, a.filename, a.content_type, a.cid, a.size
      FROM emails e
      JOIN attachments a ON a.team_id = e.team_id AND a.content_id = e.content_id
     WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[]) AND a.size IS NOT NULL
     ORDER BY e.id, a.position
"""

RELEASE = """
    UPDATE emails SET inbox_id = NULL WHERE team_id = $1 AND inbox_id = $2 AND id = ANY ($3::uuid[])
"""


class EmailSize(NamedTuple):
    """How many octets the bodies of an email have."""

    id: UUID
    octets: int


class EmailBodies(NamedTuple):
    """The bodies of an email."""

    html: str | None
    text: str | None


class EmailFile(NamedTuple):
    """An attachment that has its bytes."""

    email_id: UUID
    id: UUID
    filename: str
    content_type: str
    cid: str | None
    size: int


async def sizes(db: TeamDb, ids: Sequence[UUID]) -> dict[UUID, int]:
    return {found.id: found.octets for found in await db.all(EmailSize, SIZES, ids)}


async def bodies(db: TeamDb, email_id: UUID) -> EmailBodies | None:
    return await db.one(EmailBodies, BODIES, email_id)


async def attachments(db: TeamDb, ids: Sequence[UUID]) -> list[EmailFile]:
    """Return the attachments of these emails, in the order of each."""
    return await db.all(EmailFile, ATTACHMENTS, ids)


async def release(db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> None:
    """Keep these emails as long as any other email: no inbox has them any more."""
    await db.run(RELEASE, inbox_id, ids)


class SentFile(NamedTuple):
    """An attachment; `url` is where it was to be fetched."""

    id: UUID
    filename: str
    content_type: str
    cid: str | None
    size: int | None
    url: str | None


class SentMailFields(NamedTuple):
    """Header fields of a sent email as they are stored, each JSON text."""

    reply_to_list: str | None
    headers: str | None


class AttachmentOctets(NamedTuple):
    """Where the octets of an attachment are."""

    data: bytes | None
    blob: str | None


async def fields(db: TeamDb, email_id: UUID) -> SentMailFields | None:
    """Return the header fields that an answer to the email needs."""
    return await db.one(
        SentMailFields,
        """
        SELECT e.reply_to_list, c.headers
          FROM emails e
          LEFT JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
         WHERE e.team_id = $1 AND e.id = $2
        """,
        email_id,
    )


async def files(db: TeamDb, email_id: UUID) -> list[SentFile]:
    """Return the attachments in their order, also those that are still to be fetched."""
    return await db.all(
        SentFile,
        """
        SELECT a.id, a.filename, a.content_type, a.cid, a.size, a.url
          FROM emails e
          JOIN attachments a ON a.team_id = e.team_id AND a.content_id = e.content_id
         WHERE e.team_id = $1 AND e.id = $2
         ORDER BY a.position
        """,
        email_id,
    )


async def octets(db: TeamDb, attachment_id: UUID) -> AttachmentOctets | None:
    """Return where the octets of an attachment are."""
    return await db.one(
        AttachmentOctets, "SELECT data, blob FROM attachments WHERE team_id = $1 AND id = $2", attachment_id
    )


async def octets_at(db: TeamDb, email_id: UUID, position: int) -> AttachmentOctets | None:
    """Return where the octets of an attachment are, by its position in the email."""
    return await db.one(
        AttachmentOctets,
        """
        SELECT a.data, a.blob
          FROM emails e
          JOIN attachments a ON a.team_id = e.team_id AND a.content_id = e.content_id
         WHERE e.team_id = $1 AND e.id = $2 AND a.position = $3 AND a.size IS NOT NULL
        """,
        email_id,
        position,
    )
