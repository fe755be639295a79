"""Telling the webhooks what became of emails: a reference each, for the body is made later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from pillarbox.kernel.db import Connection
from pillarbox.timeline.record import EVENT_OF, Publish, Published
from pillarbox.timeline.rules import Kind
from pillarbox.webhooks.publish import Publisher, Reference

SHOWS_DETAIL: Final = frozenset({Kind.BOUNCED, Kind.FAILED, Kind.SUPPRESSED, Kind.CLICKED})
"""Kinds whose data tells more than that it happened (webhooks.md section 7.1)."""

_encode = msgspec.json.Encoder().encode


def announcer(publisher: Publisher) -> Publish:
    """The hook of the timeline: one event for each recipient, or one for the whole email."""

    async def publish(conn: Connection, events: Sequence[Published]) -> None:
        await publisher.refer(conn, [found for event in events for found in _references(event)])

    return publish


def _references(event: Published) -> list[Reference]:
    kind = EVENT_OF[event.kind]
    shown = event.detail if event.kind in SHOWS_DETAIL else None
    detail = None if shown is None else _encode(shown).decode()
    positions: Sequence[int | None] = (None,) if event.positions is None else event.positions
    return [
        Reference(event.team_id, kind, event.at, event.email_id, position, detail) for position in positions
    ]
