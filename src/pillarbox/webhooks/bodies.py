"""Bodies: made once, kept, and the same bytes ever after (webhooks.md section 3).

An event that was published with its data has its body from then on. The body of one that only
refers to a row is made by whoever needs it first: a dispatcher that claims a delivery of it, or a reader
of the log. Where two make it at once, one is kept and both use that one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from msgspec import Raw

from pillarbox.kernel.postgres.database import Connection
from pillarbox.webhooks import event_queries
from pillarbox.webhooks.publish import body_of

EMPTY = Raw(b"{}")


class QueuedEvent(NamedTuple):
    """An event of the queue, with what its body is made of."""

    event_id: UUID
    kind: str
    at: datetime
    subject_id: UUID | None
    position: int | None
    detail: str | None


class EventSubject(NamedTuple):
    """The sources of one event's data: the row, the position in it, and facts of the event in JSON."""

    kind: str
    id: UUID
    position: int | None
    detail: str | None


DataOf = Callable[[Connection, UUID, Sequence[EventSubject]], Awaitable[Sequence[bytes]]]
"""The data of events of one team as JSON, in the order of the subjects. A higher slice gives it."""


class WebhookBodies:
    """Makes and keeps bodies. `sources` says who makes the data, by the kind or else by its first word."""

    def __init__(self, sources: Mapping[str, DataOf]) -> None:
        self._sources = dict(sources)

    async def of(self, conn: Connection, team_id: UUID, events: Iterable[QueuedEvent]) -> dict[UUID, bytes]:
        """Return the body of each event, by its id; those that had none are kept with the caller's commit."""
        wanted = {event.event_id: event for event in events}
        if not wanted:
            return {}
        bodies = await event_queries.bodies(conn, team_id, list(wanted))
        missing = [event for event in wanted.values() if event.event_id not in bodies]
        return bodies | await self.made(conn, team_id, missing) if missing else bodies

    async def made(
        self, conn: Connection, team_id: UUID, without: Iterable[QueuedEvent]
    ) -> dict[UUID, bytes]:
        """Make and store the bodies of events that had none a moment ago; return them as `of` does."""
        events = [event for _, event in sorted({event.event_id: event for event in without}.items())]
        data = await self.data_of(conn, team_id, events)
        made = [(e.event_id, e.kind, e.at, body_of(e.kind, e.at, data[e.event_id])) for e in events]
        taken = await event_queries.store_bodies(conn, team_id, made)
        bodies = {event_id: body for event_id, _, _, body in made if event_id in taken}
        others = [event.event_id for event in events if event.event_id not in taken]
        return bodies | await event_queries.bodies(conn, team_id, others) if others else bodies

    async def data_of(
        self, conn: Connection, team_id: UUID, events: Sequence[QueuedEvent]
    ) -> dict[UUID, Raw]:
        """Return the `data` that the body of each event has, by the id of the event; nothing is kept."""
        found = {event.event_id: EMPTY for event in events}
        for source, data_of in self._sources.items():
            group = [e for e in events if e.subject_id is not None and self._source(e.kind) == source]
            subjects = [
                EventSubject(e.kind, e.subject_id, e.position, e.detail) for e in group if e.subject_id
            ]
            if subjects:
                data = await data_of(conn, team_id, subjects)
                found |= {e.event_id: Raw(one) for e, one in zip(group, data, strict=True)}
        return found

    def _source(self, kind: str) -> str:
        return kind if kind in self._sources else kind.partition(".")[0]
