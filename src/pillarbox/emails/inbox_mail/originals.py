"""Sent emails that are answered or forwarded from an inbox."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import msgspec

from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.storage.blobs import BlobStore

FIELDS = """
    SELECT e.reply_to_list, c.headers
      FROM emails e
      LEFT JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
     WHERE e.team_id = $1 AND e.id = $2
"""

BODIES = """
    SELECT c.html, c.text
      FROM emails e
      JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
     WHERE e.team_id = $1 AND e.id = $2
"""

FILES = """
    SELECT a.id, a.filename, a.content_type, a.cid, a.size, a.url
      FROM emails e
      JOIN attachments a ON a.team_id = e.team_id AND a.content_id = e.content_id
     WHERE e.team_id = $1 AND e.id = $2
     ORDER BY a.position
"""

OCTETS = """
    SELECT data, blob FROM attachments WHERE team_id = $1 AND id = $2
"""

HELD = """
    SELECT a.data, a.blob
      FROM emails e
      JOIN attachments a ON a.team_id = e.team_id AND a.content_id = e.content_id
     WHERE e.team_id = $1 AND e.id = $2 AND a.position = $3 AND a.size IS NOT NULL
"""

_headers = msgspec.json.Decoder(list[tuple[str, str]]).decode


class SentFields(NamedTuple):
    """Header fields of a sent email."""

    reply_to_list: str | None = None
    references: str | None = None


class SentBodies(NamedTuple):
    html: str | None
    text: str | None


class SentFile(NamedTuple):
    """An attachment; `url` is where it was to be fetched."""

    id: UUID
    filename: str
    content_type: str
    cid: str | None
    size: int | None
    url: str | None


class _EmailFields(NamedTuple):
    reply_to_list: str | None
    headers: str | None


class AttachmentOctets(NamedTuple):
    """Where the octets of an attachment are."""

    data: bytes | None
    blob: str | None


async def fields(db: TeamDb, email_id: UUID) -> SentFields:
    """Header fields; none where the email is gone."""
    row = await db.one(_EmailFields, FIELDS, email_id)
    if row is None:
        return SentFields()
    named = {name.lower(): value for name, value in _headers(row.headers)} if row.headers else {}
    return SentFields(row.reply_to_list, named.get("references"))


async def bodies(db: TeamDb, email_id: UUID) -> SentBodies | None:
    """What it says; None where it is gone."""
    return await db.one(SentBodies, BODIES, email_id)


async def files(db: TeamDb, email_id: UUID) -> list[SentFile]:
    """Its attachments in their order, also those that are still to be fetched."""
    return await db.all(SentFile, FILES, email_id)


async def octets(db: TeamDb, blobs: BlobStore, attachment_id: UUID) -> bytes:
    """The octets of an attachment."""
    row = await db.one(AttachmentOctets, OCTETS, attachment_id)
    if row is None:
        return b""
    return await blobs.get(row.blob) if row.blob is not None else row.data or b""


async def held(db: TeamDb, email_id: UUID, position: int) -> AttachmentOctets | None:
    """Where the octets of an attachment are, by its place in the email."""
    return await db.one(AttachmentOctets, HELD, email_id, position)
