"""Publishing events of emails to webhooks: as a reference each; the body is made later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from pillarbox.kernel.postgres.combined_statement import Statement
from pillarbox.kernel.postgres.database import Connection
from pillarbox.timeline.record import EVENT_OF, PublishedEvent
from pillarbox.timeline.rules import EventKind
from pillarbox.webhooks.publish import Publisher, Reference

SHOWS_DETAIL: Final = frozenset(
    {EventKind.BOUNCED, EventKind.FAILED, EventKind.SUPPRESSED, EventKind.CLICKED}
)
"""Kinds whose data has more than that it happened (webhooks.md section 7.1)."""

_encode = msgspec.json.Encoder().encode


class EmailEventPublisher:
    """The hook of the timeline: one event for each recipient, or one for the whole email."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    async def publish(self, conn: Connection, events: Sequence[PublishedEvent]) -> None:
        await self._publisher.refer(conn, _all_references(events))

    def statement(self, events: Sequence[PublishedEvent]) -> Statement:
        return self._publisher.referring(_all_references(events))

    def committed(self) -> None:
        self._publisher.wake()


def _all_references(events: Sequence[PublishedEvent]) -> list[Reference]:
    return [found for event in events for found in _references(event)]


def _references(event: PublishedEvent) -> list[Reference]:
    kind = EVENT_OF[event.kind]
    shown = event.detail if event.kind in SHOWS_DETAIL else None
    detail = None if shown is None else _encode(shown).decode()
    positions: Sequence[int | None] = (None,) if event.positions is None else event.positions
    return [
        Reference(
            team_id=event.team_id,
            kind=kind,
            at=event.at,
            subject_id=event.email_id,
            position=position,
            detail=detail,
        )
        for position in positions
    ]
