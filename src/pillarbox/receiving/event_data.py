"""The data of `email.received` and `email.judged` as webhooks carry it (receiving.md 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.receiving import queries, wire
from pillarbox.webhooks.bodies import EventSubject

KIND: Final = "email.received"
JUDGED: Final = "email.judged"
SHAPES: Final = {KIND: wire.EventData, JUDGED: wire.JudgedData}
"""The type of the data, by the kind of event."""

_encode = msgspec.json.Encoder().encode


async def event_data(conn: Connection, team_id: UUID, subjects: Sequence[EventSubject]) -> list[bytes]:
    """Return the data of these events as JSON; of an email that retention has removed, only its id."""
    db = TeamDb(conn, team_id)
    ids = {subject.id for subject in subjects}
    emails = await queries.emails_for_events(db, ids)
    parts = await queries.parts_for_events(db, {email.id for email in emails.values() if email.attachments})
    return [
        _encode(wire.email_data(emails[subject.id], parts.get(subject.id, [])))
        if subject.id in emails
        else _encode(wire.EventData(email_id=subject.id))
        for subject in subjects
    ]


async def judged_data(conn: Connection, team_id: UUID, subjects: Sequence[EventSubject]) -> list[bytes]:
    """Return the data of events about verdicts on received emails."""
    found = await queries.verdicts_for_events(TeamDb(conn, team_id), {subject.id for subject in subjects})
    return [
        _encode(wire.judged_data(found[one.id]) if one.id in found else wire.JudgedData(email_id=one.id))
        for one in subjects
    ]
