"""The history of an email: read, and removed together with the email."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from pillarbox.kernel.personal_data import DataSubject
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.timeline import history_queries as queries
from pillarbox.timeline.history_queries import EmailEvent, EventOfRecipient, HistoryEvent
from pillarbox.timeline.rules import FIRST

BEGINNINGS = {kind.value for kind in FIRST}


async def events(db: TeamDb, email_id: UUID, limit: int) -> list[HistoryEvent]:
    """Return the first `limit` events of one email, oldest first."""
    found = await queries.events(db, email_id, limit)
    # The first event stays first even where the clock was set back later.
    return sorted(found, key=lambda row: row.kind not in BEGINNINGS)


async def remove(db: TeamDb, email_ids: Sequence[UUID]) -> int:
    """Remove every event of these emails; returns how many there were. Metrics keep their counts."""
    return await queries.remove(db, email_ids)


async def last_of(db: TeamDb, email_id: UUID, address: str, kind: str) -> HistoryEvent | None:
    """Return the last event of this kind of the recipients with this address, in the form that is
    compared."""
    return await queries.last_of(db, email_id, address, kind)


async def first_of(db: TeamDb, wanted_events: Sequence[tuple[UUID, str]]) -> list[EmailEvent]:
    """Return the first event of an email of a kind, for each of these pairs where there is one."""
    email_ids, kinds = zip(*wanted_events, strict=True)
    return await queries.first_of(db, email_ids, kinds)


async def redact(
    db: TeamDb, email_ids: Sequence[UUID], person: DataSubject, stands_for: str, facts: Sequence[str]
) -> None:
    """Erase a person in the details of these emails' events. Events of a recipient whose address is
    `stands_for` lose these facts; elsewhere the address alone gives way."""
    ids, details = [], []
    for event in await queries.about_person(db, email_ids, stands_for, person.needle):
        detail: dict[str, Any] = msgspec.json.decode(event.detail)
        if event.is_own:
            detail = {name: value for name, value in detail.items() if name not in facts}
        ids.append((event.email_id, event.id))
        details.append(msgspec.json.encode(detail).decode())
    if ids:
        await queries.redact(db, ids, details, person.pattern, stands_for)


async def of_recipient(
    db: TeamDb, email_ids: Sequence[UUID], address: str, limit: int
) -> dict[UUID, list[EventOfRecipient]]:
    """Return the first `limit` events of each of these emails that concern the recipient with this compared
    address."""
    events: dict[UUID, list[EventOfRecipient]] = {}
    for event in await queries.of_recipient(db, email_ids, address, limit) if email_ids else ():
        events.setdefault(event.email_id, []).append(event)
    return events
