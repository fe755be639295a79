"""Publishing: events become rows of the queue, in the transaction of the change that they describe.

Set-based, for several teams at once. Only webhooks that are enabled and want the kind get a row, by what
is committed when the statement runs; so a webhook has every event of transactions that begin after its
creation, and none of those that ended before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.combined_statement import Statement
from pillarbox.kernel.postgres.database import Connection, after_commit
from pillarbox.kernel.wire.instants import iso_style
from pillarbox.webhooks import event_queries

Wake = Callable[[], None]
"""Says that something was committed for the dispatchers."""


class WebhookEvent(NamedTuple):
    """Something that happened, with the data that the wire shows, in its order."""

    team_id: UUID
    kind: str
    at: datetime
    data: object


class Reference(NamedTuple):
    """An event whose body is made later, from the row that `subject_id` names; `detail` is JSON."""

    team_id: UUID
    kind: str
    at: datetime
    subject_id: UUID
    position: int | None = None
    detail: str | None = None


class _Envelope(msgspec.Struct, frozen=True):
    type: str
    created_at: str
    data: Any


_encode = msgspec.json.Encoder().encode


def body_of(kind: str, instant: datetime, data: object) -> bytes:
    """Return the bytes that are sent (webhooks.md section 7); `data` may be `msgspec.Raw`."""
    return _encode(_Envelope(kind, iso_style(instant), data))


def _wake_nobody() -> None:
    """Wake nobody, where there is no dispatcher."""


class Publisher:
    """Writes events for those who want them. `wake` is called after a commit that left work."""

    def __init__(self, ids: Ids, wake: Wake = _wake_nobody) -> None:
        self._ids = ids
        self.wake = wake

    async def publish(self, conn: Connection, events: Sequence[WebhookEvent]) -> None:
        """Queue these events for their subscribers; their bodies are made now."""
        rows = [
            (event.team_id, self._ids.new(), event.kind, event.at, body_of(event.kind, event.at, event.data))
            for event in events
        ]
        if rows and await event_queries.publish(conn, rows):
            after_commit(conn, self.wake)

    async def refer(self, conn: Connection, references: Sequence[Reference]) -> None:
        """Queue these events for their subscribers; their bodies are made when the first is claimed."""
        if references and await event_queries.refer(conn, self.referring(references)):
            after_commit(conn, self.wake)

    def referring(self, references: Sequence[Reference]) -> Statement:
        """Return the statement that queues events for their subscribers, as part of a larger one. Call `wake`
        after its commit."""
        return event_queries.referring([(self._ids.new(), *reference) for reference in references])
