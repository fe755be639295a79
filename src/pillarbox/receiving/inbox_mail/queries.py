"""SQL of received emails that are messages of inboxes (inboxes.md 6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb

SIZES = """
    SELECT id, size FROM received_emails WHERE team_id = $1 AND id = ANY ($2::uuid[])
"""

FILES = """
    SELECT id, email_id, filename, content_type, inline, content_id, size
      FROM received_attachments
     WHERE team_id = $1 AND email_id = ANY ($2::uuid[])
     ORDER BY email_id, position
"""

RELEASE = """
    UPDATE received_emails
       SET inboxes = nullif(array_remove(inboxes, $2), '{}')
     WHERE team_id = $1 AND id = ANY ($3::uuid[])
"""


class ReceivedSize(NamedTuple):
    """How many octets a message has."""

    id: UUID
    size: int


class ReceivedFile(NamedTuple):
    """An attachment."""

    id: UUID
    email_id: UUID
    filename: str | None
    content_type: str
    inline: bool
    content_id: str | None
    size: int


async def sizes(db: TeamDb, ids: Sequence[UUID]) -> dict[UUID, int]:
    return {found.id: found.size for found in await db.all(ReceivedSize, SIZES, ids)}


async def files(db: TeamDb, ids: Sequence[UUID]) -> list[ReceivedFile]:
    """Return the attachments of these emails, in the order of each."""
    return await db.all(ReceivedFile, FILES, ids)


async def release(db: TeamDb, inbox_id: UUID, ids: Sequence[UUID]) -> None:
    """Note that this inbox has these emails no longer."""
    await db.run(RELEASE, inbox_id, ids)


class ReceivedMailFields(NamedTuple):
    """Fields of a received email. `head` is the header of a message that lies in the row, at most 256 KiB; of
    one in the blob store `references` and `in_reply_to` were read when it came."""

    to_list: str
    cc_list: str | None
    reply_to_list: str | None
    head: bytes | None
    references: str | None
    in_reply_to: str | None


async def fields(db: TeamDb, email_id: UUID) -> ReceivedMailFields | None:
    """Return the fields of an email that an answer to it needs."""
    return await db.one(
        ReceivedMailFields,
        """
        SELECT e.to_list, e.cc_list, e.reply_to_list, substring(s.data FROM 1 FOR 262144) AS head,
               s.parsed -> 'headers' ->> 'references' AS references,
               s.parsed -> 'headers' ->> 'in-reply-to' AS in_reply_to
          FROM received_emails e
          LEFT JOIN received_sources s ON s.team_id = e.team_id AND s.id = e.id
         WHERE e.team_id = $1 AND e.id = $2
        """,
        email_id,
    )


async def size(db: TeamDb, email_id: UUID) -> int | None:
    """Return how many octets a message has; None where it is gone."""
    found: int | None = await db.value(
        "SELECT size FROM received_emails WHERE team_id = $1 AND id = $2", email_id
    )
    return found
