"""SQL of the history of emails."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.postgres.database import TeamDb


class HistoryEvent(NamedTuple):
    """One event; `recipient` is None for events of the whole email, `detail` is JSON text."""

    id: UUID
    at: datetime
    kind: str
    recipient: str | None
    detail: str | None


class EmailEvent(NamedTuple):
    """One event of an email, as it is stored; `position` is that of the recipient, `detail` is JSON text."""

    id: UUID
    email_id: UUID
    at: datetime
    kind: str
    position: int | None
    detail: str | None


async def events(db: TeamDb, email_id: UUID, limit: int) -> list[HistoryEvent]:
    """Return the first `limit` events of one email by their ids."""
    return await db.all(
        HistoryEvent,
        """
        SELECT t.id, t.at, t.kind, r.mailbox AS recipient, t.detail
          FROM timeline t
          LEFT JOIN recipients r
                 ON r.team_id = t.team_id AND r.email_id = t.email_id AND r.position = t.position
         WHERE t.team_id = $1 AND t.email_id = $2
         ORDER BY t.id
         LIMIT $3
        """,
        email_id,
        limit,
    )


async def last_of(db: TeamDb, email_id: UUID, address: str, kind: str) -> HistoryEvent | None:
    """Return the last event of this kind of the recipients with this compared form of address."""
    return await db.one(
        HistoryEvent,
        """
        SELECT t.id, t.at, t.kind, r.mailbox AS recipient, t.detail
          FROM recipients r
          JOIN timeline t ON t.team_id = r.team_id AND t.email_id = r.email_id AND t.position = r.position
         WHERE r.team_id = $1 AND r.email_id = $2 AND r.address = $3 AND t.kind = $4
         ORDER BY t.id DESC
         LIMIT 1
        """,
        email_id,
        address,
        kind,
    )


async def first_of(db: TeamDb, email_ids: Sequence[UUID], kinds: Sequence[str]) -> list[EmailEvent]:
    """Return the first event of each email of its kind, where there is one."""
    return await db.all(
        EmailEvent,
        """
        SELECT DISTINCT ON (t.email_id, t.kind) t.id, t.email_id, t.at, t.kind, t.position, t.detail
          FROM unnest($2::uuid[], $3::text[]) AS k (email_id, kind)
          JOIN timeline t ON t.team_id = $1 AND t.email_id = k.email_id AND t.kind = k.kind
         ORDER BY t.email_id, t.kind, t.id
        """,
        email_ids,
        kinds,
    )


class EventOfRecipient(NamedTuple):
    """One event of an email that concerns a recipient; `detail` is JSON text."""

    email_id: UUID
    id: UUID
    at: datetime
    kind: str
    detail: str | None


async def of_recipient(
    db: TeamDb, email_ids: Sequence[UUID], address: str, limit: int
) -> list[EventOfRecipient]:
    """Return the first `limit` events of each of these emails that concern a recipient."""
    return await db.all(
        EventOfRecipient,
        """
        SELECT k.email_id, h.id, h.at, h.kind, h.detail
          FROM unnest($2::uuid[]) AS k (email_id)
         CROSS JOIN LATERAL (
               SELECT t.id, t.at, t.kind, t.detail
                 FROM timeline t
                 JOIN recipients r ON r.team_id = t.team_id AND r.email_id = t.email_id
                      AND r.position = t.position AND r.address = $3
                WHERE t.team_id = $1 AND t.email_id = k.email_id
                ORDER BY t.id
                LIMIT $4) AS h
         ORDER BY k.email_id, h.id
        """,
        email_ids,
        address,
        limit,
    )


class EventWithDetail(NamedTuple):
    """An event that has a detail, as JSON text; `is_own` where its recipient's address is the one asked
    for."""

    email_id: UUID
    id: UUID
    detail: str
    is_own: bool


async def about_person(
    db: TeamDb, email_ids: Sequence[UUID], address: str, needle: str
) -> list[EventWithDetail]:
    """Return the events of these emails that have a detail, of the recipient with this address, and those of
    others whose detail has the needle."""
    return await db.all(
        EventWithDetail,
        """
        SELECT t.email_id, t.id, t.detail, coalesce(r.address = $3, false) AS is_own
          FROM timeline t
          LEFT JOIN recipients r
                 ON r.team_id = t.team_id AND r.email_id = t.email_id AND r.position = t.position
         WHERE t.team_id = $1 AND t.email_id = ANY ($2::uuid[]) AND t.detail IS NOT NULL
           AND (r.address = $3 OR lower(t.detail::text) LIKE '%' || $4 || '%')
        """,
        email_ids,
        address,
        needle,
    )


async def redact(
    db: TeamDb, events: Sequence[tuple[UUID, UUID]], details: Sequence[str], pattern: str, stands_for: str
) -> None:
    """Give these events (email, id) other details, in which an address gives way to another text."""
    email_ids, ids = zip(*events, strict=True)
    await db.run(
        """
        UPDATE timeline t
           SET detail = regexp_replace(k.detail, $5, $6, 'gi')::json
          FROM unnest($2::uuid[], $3::uuid[], $4::text[]) AS k (email_id, id, detail)
         WHERE t.team_id = $1 AND t.email_id = k.email_id AND t.id = k.id
        """,
        email_ids,
        ids,
        details,
        pattern,
        stands_for,
    )


async def remove(db: TeamDb, email_ids: Sequence[UUID]) -> int:
    """Remove every event of these emails; return how many there were."""
    return await db.run(
        """
        DELETE FROM timeline WHERE team_id = $1 AND email_id = ANY ($2::uuid[])
        """,
        email_ids,
    )
