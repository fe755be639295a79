"""A listener, from its opening to its end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import Ids
from pillarbox.kernel.postgres.database import TeamDb, transaction
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.work.periodic import Periodic
from pillarbox.webhooks import signing_secrets
from pillarbox.webhooks.bodies import QueuedEvent, WebhookBodies
from pillarbox.webhooks.dispatch.deliveries import SCHEDULED, Delivery, Endpoint
from pillarbox.webhooks.listening import queries

REMOVE_AFTER = timedelta(hours=1)
CHECK_EVERY = timedelta(minutes=10)
MOST_TAKEN = 100
FAR = float("inf")


class ReceivedEvent(NamedTuple):
    """An event that reached a listener."""

    event_id: UUID
    kind: str
    at: datetime
    body: bytes


class WebhookListener:
    """An open listener of one team; `secret` signs what it forwards."""

    def __init__(
        self, db: TeamDb, pool: asyncpg.Pool, clock: Clock, bodies: WebhookBodies, id: UUID, secret: str
    ) -> None:
        self._db = db
        self._pool = pool
        self._clock = clock
        self._bodies = bodies
        self.id = id
        self.secret = secret

    async def take(self) -> list[ReceivedEvent]:
        """Return the next events, each once, and note that somebody reads."""
        await queries.touch(self._db, self.id, self._clock.now())
        async with transaction(self._pool) as conn:
            rows = await queries.take(conn, self._db.team_id, self.id, MOST_TAKEN)
            bodies = await self._bodies.of(conn, self._db.team_id, [QueuedEvent(*row) for row in rows])
        return [ReceivedEvent(row.event_id, row.kind, row.at, bodies[row.event_id]) for row in rows]

    def delivery(self, event: ReceivedEvent, url: str) -> tuple[Delivery, Endpoint]:
        """Return the event as a delivery to a program of the listener's own."""
        made = Delivery(
            team_id=self._db.team_id,
            webhook_id=self.id,
            event_id=event.event_id,
            replay=SCHEDULED,
            at=event.at,
            attempt=1,
            tries=0,
            body=event.body,
            deadline=FAR,
        )
        return made, Endpoint(url, [signing_secrets.key_of(self.secret)])

    async def close(self, ids: Ids) -> None:
        """Remove it with all that waits for it."""
        await queries.close(self._db, self.id, ids.new(), ids.now())


async def listen(
    pool: asyncpg.Pool,
    team_id: UUID,
    kinds: Sequence[str],
    *,
    clock: Clock,
    ids: Ids,
    ring: KeyRing,
    bodies: WebhookBodies,
) -> WebhookListener:
    """Start a new listener for these kinds of events."""
    db, stamp, secret = TeamDb(pool, team_id), ids.stamp(), signing_secrets.new_secret()
    await queries.open_listener(db, stamp, list(kinds), signing_secrets.seal(ring, stamp.id, secret))
    return WebhookListener(db, pool, clock, bodies, stamp.id, secret)


def listener_periodic(pool: asyncpg.Pool, clock: Clock, ids: Ids) -> list[Periodic]:
    """Return the periodic job that removes listeners that nobody reads any more."""

    async def collect() -> str:
        found = await queries.abandoned(pool, clock.now() - REMOVE_AFTER)
        for team_id, listener in found:
            await queries.close(TeamDb(pool, team_id), listener, ids.new(), ids.now())
        return f"{len(found)} listeners"

    return [Periodic("webhooks.listeners", CHECK_EVERY, collect)]
