"""SQL of emails as the engine needs them when it claims work, and of attachments that are fetched before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.delivery.items import AttachmentRef
from pillarbox.kernel.postgres.database import Connection, TeamDb

# The older ones first, as long as those before them have less than $3 octets together.
EMAILS = """
    SELECT e.id, e.created_at, e.message_id, e.sender, e.to_list, e.cc_list, e.reply_to_list, e.subject,
           e.scheduled_at, e.key_id, e.domain_id, e.domain_name, e.broadcast_id, c.headers, c.attachments,
           e.content_id, e.topic_id, c.link_places, t.number AS team_number,
           CASE WHEN e.broadcast_id IS NOT NULL THEN row(NULL::text, NULL::text)
                WHEN coalesce(sum(s.octets) OVER earlier, 0) < $3 THEN row(c.html, c.text) END AS bodies,
           (SELECT CASE WHEN k.created_by IS NULL OR k.is_kept THEN k.status
                        WHEN EXISTS (SELECT FROM team_members m
                                       JOIN people p ON p.id = m.person_id AND p.disabled_at IS NULL
                                      WHERE m.team_id = k.team_id AND m.person_id = k.created_by
                                        AND m.role = ANY ($4::text[]))
                             AND (k.grant_id IS NULL
                                  OR (SELECT g.revoked_at IS NULL
                                         FROM oauth_grants g
                                        WHERE g.team_id = k.team_id AND g.id = k.grant_id))
                        THEN k.status ELSE 'inactive' END
              FROM api_keys k
             WHERE k.team_id = e.team_id AND k.id = e.key_id AND e.scheduled_at IS NOT NULL) AS key_status,
           (SELECT m.text FROM sealed_mails m WHERE m.team_id = e.team_id AND m.email_id = e.id) AS sealed
      FROM emails e
      JOIN contents c ON c.team_id = e.team_id AND c.id = e.content_id
      JOIN teams t ON t.id = e.team_id
     CROSS JOIN LATERAL (
           SELECT CASE WHEN e.broadcast_id IS NULL
                       THEN coalesce(octet_length(c.html), 0) + coalesce(octet_length(c.text), 0)
                            + CASE WHEN c.attachments > 0
                                   THEN (SELECT coalesce(sum(a.size), 0) FROM attachments a
                                          WHERE a.team_id = c.team_id AND a.content_id = c.id
                                            AND a.blob IS NULL)
                                   ELSE 0 END
                       ELSE 0 END AS octets) AS s
     WHERE e.team_id = $1 AND e.id = ANY ($2::uuid[])
    WINDOW earlier AS (ORDER BY e.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
"""

TARGETS = """
    SELECT r.email_id, r.grp, r.position, r.mailbox, r.address, s.origin, r.personal,
           (SELECT true FROM erasures e WHERE e.team_id = $1 LIMIT 1) AS has_erased
      FROM recipients r
      LEFT JOIN suppressions s ON s.team_id = r.team_id AND s.address = r.address
     WHERE r.team_id = $1 AND r.email_id = ANY ($2::uuid[])
       AND r.state IN ('queued', 'scheduled', 'sent', 'delivery_delayed')
     ORDER BY r.email_id, r.position
"""

ATTACHMENTS = """
    SELECT content_id, id, filename, content_type, cid, size, data, blob
      FROM attachments
     WHERE team_id = $1 AND content_id = ANY ($2::uuid[])
     ORDER BY content_id, position
"""


class StoredEmail(NamedTuple):
    """An email; `bodies` (HTML and text) are None where those before it have too many octets together."""

    id: UUID
    created_at: datetime
    message_id: str
    sender: str
    to_list: str
    cc_list: str | None
    reply_to_list: str | None
    subject: str
    scheduled_at: datetime | None
    key_id: UUID | None
    domain_id: UUID | None
    domain_name: str
    broadcast_id: UUID | None
    headers: str | None
    attachments: int
    content_id: UUID
    topic_id: UUID | None
    link_places: str | None
    team_number: int
    bodies: tuple[str | None, str | None] | None
    key_status: str | None
    sealed: bytes | None


class StoredTarget(NamedTuple):
    """An open recipient; `origin` is set where its address is suppressed, `personal` where it has a copy of a
    broadcast, `has_erased` where people were erased in the team."""

    email_id: UUID
    grp: int
    position: int
    mailbox: str
    address: str
    origin: str | None
    personal: str | None
    has_erased: bool | None = None


async def emails(
    conn: Connection, team_id: UUID, ids: Sequence[UUID], limit: int, roles: Sequence[str]
) -> list[StoredEmail]:
    """Return these emails, with bodies as long as those before have less than `limit` octets. `roles` are
    those whose keys still act."""
    return [StoredEmail._make(row) for row in await conn.fetch(EMAILS, team_id, ids, limit, roles)]


async def targets(conn: Connection, team_id: UUID, ids: Sequence[UUID]) -> list[StoredTarget]:
    """Return the open recipients of these emails."""
    return [StoredTarget._make(row) for row in await conn.fetch(TARGETS, team_id, ids)]


async def attachments(
    conn: Connection, team_id: UUID, content_ids: Sequence[UUID]
) -> list[tuple[UUID, AttachmentRef]]:
    """Return the attachments of these contents in their order, each with its content."""
    rows = await conn.fetch(ATTACHMENTS, team_id, content_ids)
    return [
        (
            content_id,
            AttachmentRef(
                id=id_,
                filename=filename,
                content_type=content_type,
                cid=cid,
                data=data,
                blob=blob,
                size=size or 0,
            ),
        )
        for content_id, id_, filename, content_type, cid, size, data, blob in rows
    ]


# Attachments that are fetched ------------------------------------------------------------------------


class FileToFetch(NamedTuple):
    """An attachment that is not here yet."""

    id: UUID
    url: str


class FetchedFile(NamedTuple):
    """An attachment with its octets, or with the blob that has them."""

    id: UUID
    size: int
    data: bytes | None
    blob: str | None


async def files_to_fetch(db: TeamDb, email_id: UUID) -> list[FileToFetch]:
    """Return the attachments that are still to be fetched, in their order."""
    return await db.all(
        FileToFetch,
        """
        SELECT id, url FROM attachments
         WHERE team_id = $1 AND content_id = $2 AND url IS NOT NULL AND size IS NULL
         ORDER BY position
        """,
        email_id,
    )


async def sizes(db: TeamDb, email_id: UUID) -> Sequence[int]:
    """Return how many octets each attachment has that is here."""
    return await db.values(
        "SELECT size FROM attachments WHERE team_id = $1 AND content_id = $2 AND size IS NOT NULL", email_id
    )


async def store(db: TeamDb, file: FetchedFile) -> None:
    """Store what was fetched."""
    await db.run(
        "UPDATE attachments SET size = $3, data = $4, blob = $5 WHERE team_id = $1 AND id = $2",
        file.id,
        file.size,
        file.data,
        file.blob,
    )


async def open_positions(db: TeamDb, email_id: UUID) -> Sequence[int]:
    """Return the positions of the recipients that nothing was sent to yet."""
    return await db.values(
        """
        SELECT position FROM recipients
         WHERE team_id = $1 AND email_id = $2 AND state IN ('queued', 'scheduled')
         ORDER BY position
        """,
        email_id,
    )


async def scheduled_at(db: TeamDb, email_id: UUID) -> datetime | None:
    """Return the time that the email is scheduled for."""
    found: datetime | None = await db.value(
        "SELECT scheduled_at FROM emails WHERE team_id = $1 AND id = $2", email_id
    )
    return found
