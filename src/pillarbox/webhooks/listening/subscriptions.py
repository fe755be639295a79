"""Subscriptions: events for a part of this program, out of the same rows as those for webhooks.

A subscription is a listener of a team that nobody called and that no age removes. Its events are written in
the transactions that the events belong to. The part of the program takes them in a transaction of its own,
together with what follows from them, so each has its effects once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

import asyncpg
import msgspec

from pillarbox.kernel.postgres.database import Connection, TeamDb
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.webhooks import signing_secrets
from pillarbox.webhooks.bodies import QueuedEvent, WebhookBodies
from pillarbox.webhooks.listening import subscription_queries as queries
from pillarbox.webhooks.listening.queries import take
from pillarbox.webhooks.publish import Wake

NAMESPACE: Final = UUID("6f0a5c36-94b2-4f8e-9d0a-3b6f1c2d7e58")


class SubscribedEvent(NamedTuple):
    """An event of a subscription, with the `data` that a webhook would be sent."""

    id: UUID
    kind: str
    at: datetime
    data: dict[str, Any]


class PastEvent(NamedTuple):
    """An event that had happened before it was asked for; the parts are those of a `Reference`."""

    id: UUID
    kind: str
    at: datetime
    subject_id: UUID
    position: int | None
    detail: str | None


@dataclass(frozen=True, slots=True)
class SubscriptionWake:
    """Called after a commit that may have left events for subscriptions."""

    wake: Wake


IS_BUSY: Final = queries.IS_BUSY
"""Whether events wait for a subscription, as a question of `QueuePoll`."""


@dataclass(frozen=True, slots=True)
class EventSubscription:
    """The subscriptions of one part of the program, `name`, one in each team that needs it."""

    name: str
    ring: KeyRing
    bodies: WebhookBodies

    @property
    def id(self) -> UUID:
        """Return the id that the subscription has in every team."""
        return _id_of(self.name)

    async def subscribe(self, db: TeamDb, kinds: Sequence[str], now: datetime) -> None:
        """Subscribe the team to these kinds of events, beside those that it has already."""
        sealed = signing_secrets.seal(self.ring, self.id, signing_secrets.new_secret())
        await queries.subscribe(db, self.id, self.name, sorted(set(kinds)), sealed, now)

    async def unsubscribe(self, db: TeamDb, before: datetime) -> bool:
        """End the subscription of the team where it last changed before then; whether it did."""
        return await queries.unsubscribe(db, self.id, before)

    async def teams(self, pool: asyncpg.Pool) -> list[UUID]:
        """Return the teams with events that wait."""
        return await queries.waiting(pool, self.id)

    async def subscribed_teams(self, pool: asyncpg.Pool) -> list[UUID]:
        """Return the teams that have a subscription."""
        return await queries.subscribed(pool, self.id)

    async def take(self, conn: Connection, team_id: UUID, limit: int) -> list[SubscribedEvent]:
        """Take the oldest events, which are gone with the caller's commit. Empty while somebody else takes
        those of the team."""
        if not await queries.hold(conn, team_id, self.id):
            return []
        rows = await take(conn, team_id, self.id, limit)
        data = await self.bodies.data_of(conn, team_id, [QueuedEvent(*row) for row in rows])
        return [
            SubscribedEvent(row.event_id, row.kind, row.at, msgspec.json.decode(data[row.event_id]))
            for row in rows
        ]


async def offer(db: TeamDb, name: str, events: Sequence[PastEvent]) -> None:
    """Write events that happened earlier for the subscription of that name, where the team has it."""
    if events:
        await queries.offer(db, _id_of(name), events)


def _id_of(name: str) -> UUID:
    return uuid5(NAMESPACE, name)
