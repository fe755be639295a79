"""Erases a person from emails (docs/decisions/0182).

An email stays as something that was counted: its recipient is nobody any more, and its history has no
replies,
links and addresses of machines. What it said goes where nobody else got it; where others did, the address
alone
gives way. So metrics, reports of broadcasts and the history go on to agree.

Mail that is still to go out to the person alone ends first, as if the address were on the suppression list.
An item that a process has in hand is left to it, and the email is looked at once more later. So is one that
others get too: the person is skipped when it goes out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from pillarbox.emails.personal import personal_queries as queries
from pillarbox.emails.personal.personal_queries import EmailOfPerson
from pillarbox.kernel.personal_data import (
    BATCH,
    ERASED_ADDRESS,
    DataSubject,
    ErasedRows,
    EraseStep,
    PersonalData,
    id_at,
    place_of,
)
from pillarbox.kernel.postgres.database import TeamDb
from pillarbox.kernel.slices import Container
from pillarbox.timeline import history
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rules import EventDetail, EventKind, TimelineEntry

TOLD: Final = ("click", "reply")
"""Facts of an event that are about the person, or may name it."""

STEP: Final = 100
"""Emails that one step of an erasure reads with all that they say: fewer than of other rows, so that the
statement has its answer in time where bodies are large."""

MOST_EVENTS: Final = 1000
AT_ONCE: Final = 4
"""Emails whose bodies are in memory: one may have many megabytes."""


def eraser(kit: Container) -> EraseStep:
    """Return the step that erases a person from emails."""
    timeline = kit.need(Timeline)

    async def erase(db: TeamDb, person: DataSubject, place: str, now: datetime) -> ErasedRows:
        walked = await queries.span(db, person, id_at(place), STEP)
        concerned = [email for email in walked if email.is_recipient or email.is_mentioned]
        if open_ids := [email.id for email in concerned if email.is_alone and email.has_work]:
            await _end(db, timeline, person, open_ids, now)
        held = set(await queries.with_work(db, [email.id for email in concerned]))
        ready = [email for email in concerned if email.id not in held]
        blobs = await _redact(db, person, ready)
        last = walked[-1].id if walked else None
        return ErasedRows(place_of(last, len(walked), STEP), len(ready), waiting=len(held), blobs=blobs)

    return erase


async def _end(
    db: TeamDb, timeline: Timeline, person: DataSubject, email_ids: Sequence[UUID], now: datetime
) -> None:
    """End mail to the person that nobody has in hand, as suppressed mail ends."""
    free = await queries.free_work(db, email_ids)
    recipients = await queries.open_recipients(db, email_ids, person.address)
    ended = [row for row in recipients if (row.email_id, row.grp) in free]
    entries = [
        TimelineEntry(
            team_id=db.team_id,
            email_id=row.email_id,
            position=row.position,
            kind=EventKind.SUPPRESSED,
            at=now,
            detail=EventDetail(suppressed="manual"),
        )
        for row in ended
    ]
    if entries:
        await timeline.record(db.connection, entries)
        await queries.drop_empty_work(db, [row.email_id for row in ended], [row.grp for row in ended])


async def _redact(db: TeamDb, person: DataSubject, emails: Sequence[EmailOfPerson]) -> Sequence[str | None]:
    """Erase the person in emails that have no work; returns the blobs of attachments that are gone."""
    if not emails:
        return []
    ids = [email.id for email in emails]
    alone = [email.id for email in emails if email.is_alone]
    await queries.redact_recipients(db, ids, person, ERASED_ADDRESS)
    await queries.redact_emails(db, ids, alone, person, ERASED_ADDRESS)
    await queries.redact_contents(db, ids, alone, person, ERASED_ADDRESS)
    await queries.redact_file_names(db, ids, person, ERASED_ADDRESS)
    await history.redact(db, ids, person, ERASED_ADDRESS, TOLD)
    return await queries.remove_attachments(db, alone)


async def read(db: TeamDb, person: DataSubject) -> AsyncIterator[dict[str, Any]]:
    """Yield the emails to the person, the oldest first, with what became of them."""
    after = id_at("")
    while True:
        walked = await queries.recipients_span(db, person.address, after, BATCH)
        ids = [row.id for row in walked if row.is_recipient]
        for start in range(0, len(ids), AT_ONCE):
            async for email in _shown(db, person, ids[start : start + AT_ONCE]):
                yield email
        if len(walked) < BATCH:
            return
        after = walked[-1].id


async def _shown(db: TeamDb, person: DataSubject, ids: Sequence[UUID]) -> AsyncIterator[dict[str, Any]]:
    events = await history.of_recipient(db, ids, person.address, MOST_EVENTS)
    for email in await queries.shown(db, ids, person.address):
        yield {
            "id": email.id,
            "created_at": email.created_at,
            "from": email.sender,
            "to": msgspec.json.decode(email.to_list),
            "subject": email.subject,
            "state": email.last_event,
            "html": email.html,
            "text": email.text,
            "values": None if email.personal is None else msgspec.json.decode(email.personal),
            "tags": None if email.tags is None else msgspec.json.decode(email.tags),
            "events": [
                {
                    "at": event.at,
                    "kind": event.kind,
                    "detail": None if event.detail is None else msgspec.json.decode(event.detail),
                }
                for event in events.get(email.id, [])
            ],
        }


PERSONAL_DATA: Final = [PersonalData(name="emails", order=50, eraser=eraser, read=read)]
