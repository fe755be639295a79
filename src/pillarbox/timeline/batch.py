"""The changes of one batch of events, collected before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

import msgspec

from pillarbox.kernel.ids import Ids
from pillarbox.timeline import queries
from pillarbox.timeline.queries import LockedRecipient, MetricDimensions
from pillarbox.timeline.rules import (
    EventDetail,
    EventEffect,
    EventKind,
    FirstEntry,
    RecipientFate,
    TimelineEntry,
    place,
    step,
)

QUARTER = 15
SLOT = 10
"""Seconds: increments are kept apart no finer than ranges can ask cheaply (`rollups`)."""


class PublishedEvent(NamedTuple):
    """An event that subscribers may want; `positions` are the recipients it is about (None: all)."""

    team_id: UUID
    email_id: UUID
    positions: tuple[int, ...] | None
    kind: EventKind
    at: datetime
    detail: EventDetail | None


class _MetricIncrement(NamedTuple):
    team_id: UUID
    start: datetime
    domain_id: UUID | None
    domain_name: str
    broadcast_id: UUID | None


_encode = msgspec.json.Encoder().encode


class TimelineBatch:
    """Rows of history, fates, heads and counts; and what is to be published."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._known: dict[tuple[UUID, UUID, int], RecipientFate] = {}
        self._emails: dict[tuple[UUID, UUID], LockedRecipient] = {}
        self._counts: dict[_MetricIncrement, dict[str, int]] = {}
        self._slots: dict[int, datetime] = {}
        self.fates: dict[tuple[UUID, UUID, int], RecipientFate] = {}
        self.heads: dict[tuple[UUID, UUID], tuple[EventKind, datetime, datetime | None]] = {}
        self._rows: list[queries.Row] = []
        self.published: list[PublishedEvent] = []
        self.taken: list[TimelineEntry] = []

    def open(self, opening: FirstEntry) -> None:
        self._add_row(opening.team_id, opening.email_id, opening.at, opening.kind, None, None)
        self.count_opening(opening)

    def count_opening(self, opening: FirstEntry) -> None:
        """Add a first entry, except for its line of history."""
        where = _MetricIncrement(
            team_id=opening.team_id,
            start=self._slot(opening.at),
            domain_id=opening.domain_id,
            domain_name=opening.domain_name,
            broadcast_id=opening.broadcast_id,
        )
        self._count(where, "received", opening.recipients)
        if opening.kind is EventKind.SCHEDULED:
            self.published.append(
                PublishedEvent(
                    team_id=opening.team_id,
                    email_id=opening.email_id,
                    positions=None,
                    kind=opening.kind,
                    at=opening.at,
                    detail=None,
                )
            )

    def add_known(self, row: LockedRecipient) -> None:
        email = (row.team_id, row.email_id)
        self._emails[email] = row
        self._known[(*email, row.position)] = RecipientFate(
            state=EventKind(row.state),
            sent_at=row.sent_at,
            delayed_at=row.delayed_at,
            bounce_type=row.bounce_type,
            opened_at=row.opened_at,
            clicked_at=row.clicked_at,
            complained_at=row.complained_at,
            unsubscribed_at=row.unsubscribed_at,
        )

    def apply(self, entry: TimelineEntry) -> None:
        if entry.position is None:
            raise ValueError("an event of a whole email goes through release or cancel")
        key = (entry.team_id, entry.email_id, entry.position)
        fate = self._known.get(key)
        moved = step(fate, entry) if fate is not None else None
        if moved is None:
            return
        self._known[key] = self.fates[key] = moved.fate
        row = self._emails[key[:2]]
        self._note(entry, moved, row, first_sent=self._head(key[:2], row, entry, shows=moved.shows))

    def adopt(self, row: MetricDimensions, steps: Sequence[tuple[TimelineEntry, EventEffect]]) -> None:
        """Add the effects of an email's first events, which are written already."""
        for entry, moved in steps:
            self._note(entry, moved, row, first_sent=entry.kind is EventKind.SENT)

    def _note(
        self,
        entry: TimelineEntry,
        moved: EventEffect,
        row: LockedRecipient | MetricDimensions,
        *,
        first_sent: bool,
    ) -> None:
        """Note the history, metrics and webhooks of one event that took effect."""
        self.taken.append(entry)
        detail = entry.detail
        if not moved.publishes and detail is not None:
            detail = msgspec.structs.replace(detail, repeated=True)
        self._add_row(entry.team_id, entry.email_id, entry.at, entry.kind, entry.position, detail)
        where = _MetricIncrement(
            team_id=entry.team_id,
            start=self._slot(entry.at),
            domain_id=row.domain_id,
            domain_name=row.domain_name,
            broadcast_id=row.broadcast_id,
        )
        for metric in moved.counts:
            self._count(where, metric, 1)
        if moved.publishes:
            self._announce(entry, first_sent)

    def _head(
        self, email: tuple[UUID, UUID], row: LockedRecipient, entry: TimelineEntry, *, shows: bool
    ) -> bool:
        """Bring the email's own columns up to date; True for the event that makes it `sent`."""
        before = self.heads.get(email) or (
            EventKind(row.last_event),
            row.last_event_at,
            row.email_sent_at,
        )
        kind, at, sent_at = before
        first_sent = entry.kind is EventKind.SENT and sent_at is None
        if first_sent:
            sent_at = entry.at
        if shows and place(entry.kind, entry.at) > place(kind, at):
            kind, at = entry.kind, entry.at
        if (kind, at, sent_at) != before:
            self.heads[email] = (kind, at, sent_at)
        return first_sent

    def _announce(self, entry: TimelineEntry, first_sent: bool) -> None:
        if entry.kind is EventKind.SENT:
            if first_sent:
                self.published.append(
                    PublishedEvent(
                        team_id=entry.team_id,
                        email_id=entry.email_id,
                        positions=None,
                        kind=entry.kind,
                        at=entry.at,
                        detail=entry.detail,
                    )
                )
            return
        positions = (entry.position,) if entry.position is not None else None
        self.published.append(
            PublishedEvent(
                team_id=entry.team_id,
                email_id=entry.email_id,
                positions=positions,
                kind=entry.kind,
                at=entry.at,
                detail=entry.detail,
            )
        )

    def _add_row(
        self,
        team_id: UUID,
        email_id: UUID,
        instant: datetime,
        kind: EventKind,
        position: int | None,
        detail: EventDetail | None,
    ) -> None:
        self._rows.append(
            {
                "team_id": team_id,
                "email_id": email_id,
                "at": instant,
                "kind": kind.value,
                "position": position,
                "detail": None if detail is None else _encode(detail).decode(),
            }
        )

    def _slot(self, instant: datetime) -> datetime:
        number = int(instant.timestamp()) // SLOT
        found = self._slots.get(number)
        if found is None:
            found = self._slots[number] = slot(instant)
        return found

    def _count(self, where: _MetricIncrement, metric: str, amount: int) -> None:
        counts = self._counts.setdefault(where, {})
        counts[metric] = counts.get(metric, 0) + amount

    def rows(self) -> list[queries.Row]:
        """Return the lines of history, with ids in their order."""
        for row, made in zip(self._rows, self._ids.several(len(self._rows)), strict=True):
            row["id"] = made
        return self._rows

    def fate_rows(self) -> list[tuple[UUID, UUID, int, RecipientFate]]:
        return [(*key, fate) for key, fate in self.fates.items()]

    def head_rows(self) -> list[tuple[UUID, UUID, str, datetime, datetime | None]]:
        return [(*key, kind.value, at, sent_at) for key, (kind, at, sent_at) in self.heads.items()]

    def received(self) -> list[queries.Row]:
        """Return the increments where nothing but first entries is counted."""
        return [
            {**where._asdict(), "id": self._ids.new(), "received": counts["received"]}
            for where, counts in self._counts.items()
        ]

    def increments(self) -> list[queries.Row]:
        return [
            {
                **_ZEROS,
                **counts,
                "team_id": where.team_id,
                "id": self._ids.new(),
                "start": where.start,
                "domain_id": where.domain_id,
                "domain_name": where.domain_name,
                "broadcast_id": where.broadcast_id,
            }
            for where, counts in self._counts.items()
        ]


_ZEROS = dict.fromkeys(queries.METRICS, 0)


def quarter(instant: datetime) -> datetime:
    """Return the quarter hour that an instant lies in, in UTC."""
    utc = instant.astimezone(UTC)
    return utc.replace(minute=utc.minute - utc.minute % QUARTER, second=0, microsecond=0)


def slot(instant: datetime) -> datetime:
    """Return the ten seconds that an instant lies in, in UTC."""
    utc = instant.astimezone(UTC)
    return utc.replace(second=utc.second - utc.second % SLOT, microsecond=0)
