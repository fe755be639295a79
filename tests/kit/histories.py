"""Generated histories of emails, written through the timeline as the product writes them, and beside them a
plain list of what happened, for a computation that knows nothing of rollups.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.ids import EPOCH, MICROSECOND, uuid7
from pillarbox.kernel.postgres.database import transaction
from pillarbox.timeline.record import Timeline
from pillarbox.timeline.rules import Bounce, EventDetail, EventKind, FirstEntry, TimelineEntry

BOUNCES = ("Permanent", "Transient", "Undetermined")


class Sender(NamedTuple):
    """Who an email is counted for."""

    domain_id: UUID | None
    domain_name: str
    broadcast_id: UUID | None


class Event(NamedTuple):
    """One event of one recipient, and what it counts as."""

    at: datetime
    email_id: UUID
    sender: Sender
    metrics: tuple[str, ...]


@dataclass(slots=True)
class History:
    """What happened to the emails of one team."""

    team_id: UUID
    emails: list[UUID] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def insert(
    pool: asyncpg.Pool,
    timeline: Timeline,
    team_id: UUID,
    at: datetime,
    recipients: int,
    sender: Sender,
    number: int,
) -> UUID:
    """Insert an email that was accepted at `at`; it has no content and nothing is queued."""
    email_id = uuid7((at - EPOCH) // MICROSECOND, number.to_bytes(8, "big"))
    async with transaction(pool) as conn:
        await conn.execute(
            """
            INSERT INTO emails (team_id, id, created_at, content_id, message_id, sender, to_list, subject,
                                domain_id, domain_name, broadcast_id, last_event, last_event_at)
            VALUES ($1, $2, $3, $2, 'm', 's', '[]', 's', $4, $5, $6, 'queued', $3)
            """,
            team_id,
            email_id,
            at,
            *sender,
        )
        await conn.executemany(
            "INSERT INTO recipients (team_id, email_id, position, role, address, mailbox, grp, state)"
            " VALUES ($1, $2, $3, 'to', 'a', 'a', 0, 'queued')",
            [(team_id, email_id, position) for position in range(recipients)],
        )
        opening = FirstEntry(
            team_id=team_id,
            email_id=email_id,
            kind=EventKind.QUEUED,
            at=at,
            recipients=recipients,
            **sender._asdict(),
        )
        await timeline.record(conn, openings=[opening])
    return email_id


async def generate(
    pool: asyncpg.Pool,
    timeline: Timeline,
    team_id: UUID,
    windows: Sequence[tuple[datetime, datetime]],
    senders: Sequence[Sender],
    emails: int,
    seed: int,
    until: datetime,
) -> History:
    """Generate emails that are accepted at random instants of the windows, each recipient with a random fate:
    delays, repeats, opens that come in before anything else does, bounces days after the delivery; nothing
    from `until` on."""
    chance = random.Random(seed)
    made = History(team_id)
    for number in range(emails):
        start, end = chance.choice(windows)
        at = start + timedelta(microseconds=chance.randrange((end - start) // MICROSECOND))
        sender = chance.choice(senders)
        recipients = chance.choice((1, 1, 1, 2, 3))
        email_id = await insert(pool, timeline, team_id, at, recipients, sender, number)
        made.emails.append(email_id)
        made.events += [Event(at=at, email_id=email_id, sender=sender, metrics=("received",))] * recipients
        entries = [
            entry
            for position in range(recipients)
            for entry in _fate(chance, team_id, email_id, position, at)
        ]
        async with transaction(pool) as conn:
            taken = await timeline.record(conn, [entry for entry in entries if entry.at < until])
        made.events += _counted(taken, sender)
    return made


def _fate(
    chance: random.Random, team_id: UUID, email_id: UUID, position: int, accepted: datetime
) -> list[TimelineEntry]:
    """Return the events of one recipient in the order in which they are recorded; some of them the
    rules refuse."""
    at = accepted
    entries = []

    def then(kind: EventKind, most: timedelta, detail: EventDetail | None = None) -> None:
        nonlocal at
        at += timedelta(microseconds=chance.randrange(most // MICROSECOND))
        entries.append(
            TimelineEntry(
                team_id=team_id, email_id=email_id, position=position, kind=kind, at=at, detail=detail
            )
        )

    if chance.random() < 0.1:
        then(EventKind.FAILED, timedelta(hours=3), EventDetail())
        return entries
    if chance.random() < 0.1:
        then(EventKind.SUPPRESSED, timedelta(seconds=3))
        return entries
    then(EventKind.SENT, timedelta(minutes=1))
    for _ in range(chance.choice((0, 0, 1, 3))):
        then(EventKind.DELIVERY_DELAYED, timedelta(hours=2), EventDetail())
    fate = chance.random()
    if fate < 0.15:
        then(EventKind.BOUNCED, timedelta(hours=1), _bounce(chance))
    elif fate < 0.9:
        then(EventKind.DELIVERED, timedelta(hours=1))
        for _ in range(chance.choice((0, 1, 2, 5))):
            then(chance.choice((EventKind.OPENED, EventKind.OPENED, EventKind.CLICKED)), timedelta(hours=30))
        if chance.random() < 0.1:
            then(EventKind.COMPLAINED, timedelta(hours=40))
            then(EventKind.COMPLAINED, timedelta(hours=1))
        if chance.random() < 0.1:
            then(EventKind.BOUNCED, timedelta(hours=60), _bounce(chance))
    return entries


def _bounce(chance: random.Random) -> EventDetail:
    return EventDetail(bounce=Bounce(chance.choice(BOUNCES)))


def _counted(taken: Sequence[TimelineEntry], sender: Sender) -> list[Event]:
    """Return what the events that took effect count as, by the words of metrics.md section 4."""
    seen: set[tuple[int | None, EventKind]] = set()
    found = []
    for entry in taken:
        first = (entry.position, entry.kind) not in seen
        seen.add((entry.position, entry.kind))
        found.append(
            Event(at=entry.at, email_id=entry.email_id, sender=sender, metrics=_metrics(entry, first=first))
        )
    return found


def _metrics(entry: TimelineEntry, *, first: bool) -> tuple[str, ...]:
    kind = entry.kind.value
    if kind in ("opened", "clicked"):
        return (kind, f"unique_{kind}") if first else (kind,)
    if kind == "bounced":
        assert entry.detail is not None
        assert entry.detail.bounce is not None
        return ("bounced", f"bounced_{entry.detail.bounce.type.lower()}")
    return (kind,) if first else ()
