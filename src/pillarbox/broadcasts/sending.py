"""The recipients of a broadcast whose copies are made next: the next ones that wait, or those that its plan
allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from pillarbox.broadcasts import copying_queries as queries
from pillarbox.broadcasts.copying_queries import SendingBroadcast, SendingKey, WaitingRecipient
from pillarbox.broadcasts.plans import queries as plan_queries
from pillarbox.broadcasts.plans.plan import (
    WAVES,
    SendingHours,
    SendingPlan,
    copies_at_once,
    decode,
    next_quarter,
)
from pillarbox.kernel.postgres.database import Connection
from pillarbox.mail.placeholders.contact_values import Scalar

FIRST: Final = UUID(int=0)
LOOK_AGAIN: Final = 2.0
"""Seconds until a broadcast is read again from its beginning, which takes a while where it is large."""

AT_ONCE: Final = 1000
"""Recipients that are looked at together where each has hours of its own."""

NO_PLAN: Final = SendingPlan()

decoded_properties = msgspec.json.Decoder(dict[str, Scalar]).decode


class CopyGroup(NamedTuple):
    """Recipients that get the same content; `variant` is its number, if it has one."""

    content_id: UUID
    variant: int | None
    waiting: Sequence[WaitingRecipient]


class RecipientBatch(NamedTuple):
    """The recipients whose turn it is, out of so many that were looked at; `last` is the last of these."""

    looked_at: int
    last: UUID
    groups: Sequence[CopyGroup]


@dataclass(frozen=True, slots=True)
class BroadcastSending:
    """A broadcast whose copies are made now, with its plan."""

    row: SendingBroadcast
    plan: SendingPlan

    @classmethod
    def of(cls, row: SendingBroadcast) -> BroadcastSending:
        return cls(row, NO_PLAN if row.plan is None else decode(row.plan))

    @property
    def key(self) -> SendingKey:
        return self.row.key

    @property
    def has_zones(self) -> bool:
        """Return whether each recipient has hours of its own."""
        return self.plan.hours is not None and self.plan.hours.property is not None

    def is_due(self, now: datetime) -> bool:
        """Return whether copies may be made now, as far as that is the same for all recipients."""
        if self.row.next_at is not None and self.row.next_at > now:
            return False
        hours = self.plan.hours
        return hours is None or self.has_zones or hours.is_open(None, now)

    def rest(self, now: datetime) -> float:
        """Return for how many seconds nobody is looked for, once nobody was found."""
        return next_quarter(now).total_seconds() if self.has_zones else LOOK_AGAIN

    async def next(self, conn: Connection, after: UUID, limit: int, now: datetime) -> RecipientBatch | None:
        """Lock the recipients behind a contact whose turn it is now; None where another process makes the
        copies that are due."""
        broadcast = self.row
        if broadcast.stage is None:
            waiting = await queries.take(conn, broadcast, after, limit)
            last = waiting[-1].contact_id if waiting else after
            return RecipientBatch(len(waiting), last, [CopyGroup(broadcast.content_id, None, waiting)])
        if self.plan.per_hour is not None:
            if not await plan_queries.hold_due(conn, broadcast.team_id, broadcast.id, now):
                return None
            limit = copies_at_once(self.plan.per_hour, limit)
        looked_at, due = await self._due(conn, after, limit, now)
        contents = await plan_queries.contents(conn, broadcast.team_id, broadcast.id)
        last = looked_at[-1].contact_id if looked_at else after
        return RecipientBatch(len(looked_at), last, self._groups(due, contents))

    async def _due(
        self, conn: Connection, after: UUID, limit: int, now: datetime
    ) -> tuple[Sequence[WaitingRecipient], Sequence[WaitingRecipient]]:
        """Return the recipients that were looked at, and those of them whose hours are now."""
        broadcast, hours = self.row, self.plan.hours
        wave = WAVES.get(broadcast.stage or "")
        if hours is None or hours.property is None:
            waiting = await queries.take_of_plan(conn, broadcast, after, limit, wave)
            return waiting, waiting
        known = await queries.properties(conn, broadcast.team_id, [hours.property])
        waiting = await queries.take_of_plan(conn, broadcast, after, AT_ONCE, wave)
        due = []
        for place, one in enumerate(waiting):
            if one.skipped_for is not None or _is_open(hours, one, known, now):
                due.append(one)
            if len(due) == limit:
                return waiting[: place + 1], due
        return waiting, due

    def _groups(
        self, waiting: Sequence[WaitingRecipient], contents: Mapping[int, UUID]
    ) -> Sequence[CopyGroup]:
        if not contents:
            return [CopyGroup(self.row.content_id, None, waiting)]
        groups: dict[int, list[WaitingRecipient]] = {}
        for one in waiting:
            groups.setdefault(one.variant or self.row.winner or 1, []).append(one)
        return [CopyGroup(contents[number], number, groups[number]) for number in sorted(groups)]


def _is_open(
    hours: SendingHours, recipient: WaitingRecipient, known: Sequence[queries.Property], now: datetime
) -> bool:
    own = decoded_properties(recipient.properties or "{}")
    zone = own.get(str(known[0].number)) if known else None
    return hours.is_open(zone if isinstance(zone, str) else None, now)
