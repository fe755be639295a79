"""Sent emails that are answered or forwarded from an inbox."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import msgspec

from pillarbox.emails.inbox_mail import queries
from pillarbox.emails.inbox_mail.queries import AttachmentOctets, EmailBodies, SentFile
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.storage.blobs import BlobStore
from pillarbox.kernel.wire.problems import Invalid

_headers = msgspec.json.Decoder(list[tuple[str, str]]).decode


class SentFields(NamedTuple):
    """Header fields of a sent email."""

    reply_to_list: str | None = None
    references: str | None = None


async def fields(db: TeamDb, email_id: UUID) -> SentFields:
    """Return the header fields; none where the email is gone."""
    row = await queries.fields(db, email_id)
    if row is None:
        return SentFields()
    named = {name.lower(): value for name, value in _headers(row.headers)} if row.headers else {}
    return SentFields(row.reply_to_list, named.get("references"))


async def bodies(db: TeamDb, email_id: UUID) -> EmailBodies | None:
    """Return the bodies of an email; None where it is gone."""
    return await queries.bodies(db, email_id)


async def files(db: TeamDb, email_id: UUID) -> list[SentFile]:
    """Return the attachments of the email in their order, also those that are still to be fetched."""
    return await queries.files(db, email_id)


async def octets(db: TeamDb, blobs: BlobStore, attachment_id: UUID) -> bytes:
    """Return the octets of an attachment; Invalid where it was removed meanwhile."""
    row = await queries.octets(db, attachment_id)
    if row is None:
        raise Invalid("An attachment of the email was removed meanwhile.")
    return await blobs.get(row.blob) if row.blob is not None else row.data or b""


async def body_octets(db: TeamDb, email_id: UUID) -> int:
    """Return how many octets the bodies of the email have; 0 where it is gone."""
    return (await queries.sizes(db, [email_id])).get(email_id, 0)


async def held(db: TeamDb, email_id: UUID, position: int) -> AttachmentOctets | None:
    """Return where the octets of an attachment are, by its place in the email."""
    return await queries.octets_at(db, email_id, position)
