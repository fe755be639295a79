"""Claiming due deliveries and keeping the leases of what is claimed (architecture 2.5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import TROUBLE, Connection, transaction
from pillarbox.kernel.security.secrets import KeyRing, KeyRingError
from pillarbox.kernel.work.leases import Leases
from pillarbox.webhooks.bodies import QueuedEvent, WebhookBodies
from pillarbox.webhooks.dispatch import prometheus, queries
from pillarbox.webhooks.dispatch.deliveries import Delivery, Endpoint, WebhookKey
from pillarbox.webhooks.dispatch.queries import DELIVERIES, LEASE, ClaimedRow, WebhookRow
from pillarbox.webhooks.signing_secrets import signing_keys

log = get("webhooks")

MARGIN = 20.0
"""Seconds before the end of its lease at which the holder begins nothing more: what it begins a moment before
takes fifteen at most."""

WEBHOOKS_PER_PAGE = 500
START: WebhookKey = (UUID(int=0), UUID(int=0))
DELETED_EPOCH = -1
PUT_OFF = timedelta(minutes=5)
HOPELESS = timedelta(days=1)
"""How old an event is whose body still cannot be made when its delivery has failed."""


class ClaimedDeliveries(NamedTuple):
    """The result of one claim. `more`: more deliveries may be due; `elsewhere`: another process has the
    webhook."""

    endpoint: Endpoint | None = None
    deliveries: Sequence[Delivery] = ()
    more: bool = False
    elsewhere: bool = False


class DeliveryClaims:
    """Leases deliveries to this process."""

    def __init__(
        self, pool: asyncpg.Pool, clock: Clock, owner: UUID, ring: KeyRing, bodies: WebhookBodies
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._owner = owner
        self._ring = ring
        self._bodies = bodies
        self._after = START
        self._leases = Leases(DELIVERIES, pool, clock, owner, margin=MARGIN)

    async def due(self) -> tuple[list[WebhookKey], bool]:
        """Return the next webhooks with due work, and whether that was the last page: each call continues
        where the one before ended."""
        found = await queries.due_webhooks(self._pool, self._clock.now(), self._after, WEBHOOKS_PER_PAGE)
        is_full = len(found) == WEBHOOKS_PER_PAGE
        self._after = (found[-1].team_id, found[-1].webhook_id) if is_full else START
        return [(webhook.team_id, webhook.webhook_id) for webhook in found if webhook.due], not is_full

    async def claim(self, webhook: WebhookKey, limit: int) -> ClaimedDeliveries:
        """Lease up to `limit` deliveries of one webhook, with their bodies.

        Where a body cannot be made the first delivery alone is tried, and if it is the one it is put off, for
        a day at most. Raises KeyRingError where the secrets of the webhook cannot be opened.
        """
        try:
            return await self._claim(webhook, limit)
        except (*TROUBLE, KeyRingError):
            raise
        except Exception as trouble:
            # The text of the exception may contain parts of an event.
            log.error("webhooks.unreadable", webhook=webhook[1], trouble=type(trouble).__name__)
            if limit > 1:
                return await self.claim(webhook, 1)
            now = self._clock.now()
            await queries.put_off(self._pool, webhook, now, now + PUT_OFF, now - HOPELESS)
            return ClaimedDeliveries()

    async def endpoint(self, webhook: WebhookKey) -> Endpoint | None:
        """Return the endpoint that deliveries of this webhook go to now; None where it takes none."""
        found = await queries.webhook(self._pool, webhook)
        return self._endpoint(webhook, found) if found is not None and found.enabled else None

    async def renew(self, deliveries: Iterable[Delivery]) -> int:
        """Extend these leases; returns how many could not be extended this time."""
        held = {delivery.key: delivery for delivery in deliveries}
        deadline = self._leases.deadline()
        renewed = await self._leases.renew(held)
        for delivery in held.values():
            if delivery.key in renewed:
                delivery.deadline = deadline
        return len(held) - len(renewed)

    async def give_back(self, deliveries: Iterable[Delivery], earliest: datetime | None = None) -> None:
        """Free these, so that they can be claimed at once, or from `earliest` on."""
        await self._leases.give_back({delivery.key: delivery.attempt for delivery in deliveries}, earliest)

    async def recover(self, every: float = 0.0) -> int:
        """Free deliveries whose lease has surely run out, and those of dead processes, unless it was done in
        the last `every` seconds; returns how many."""
        freed = len(await self._leases.recover(every))
        if freed:
            log.warning("webhooks.recovered", deliveries=freed)
            prometheus.LEASES_RECOVERED.add(freed)
        return freed

    async def write_heartbeat(self, roles: str) -> None:
        """Write the heartbeat of this process; before the first claim."""
        await self._leases.record(roles, every=0.0)

    async def _claim(self, webhook: WebhookKey, limit: int) -> ClaimedDeliveries:
        deadline = self._leases.deadline()
        async with transaction(self._pool) as conn:
            found = await queries.lock_webhook(conn, webhook)
            if found is None and await queries.webhook(conn, webhook) is not None:
                return ClaimedDeliveries(elsewhere=True)
            endpoint = self._endpoint(webhook, found) if found is not None and found.enabled else None
            now = self._clock.now()
            taken = await queries.claim(
                conn, webhook, _live_epoch(found), self._owner, now + LEASE, now, limit
            )
            deliveries = await self._ready(conn, webhook, taken.rows, deadline)
        return ClaimedDeliveries(endpoint, deliveries, taken.met == limit, taken.elsewhere)

    async def _ready(
        self, conn: Connection, webhook: WebhookKey, rows: Sequence[ClaimedRow], deadline: float
    ) -> list[Delivery]:
        bodies = {row.event_id: row.payload for row in rows if row.payload is not None}
        missing = [QueuedEvent(row.event_id, *row[2:7]) for row in rows if row.payload is None]
        if missing:
            bodies |= await self._bodies.made(conn, webhook[0], missing)
        return [
            Delivery(
                *webhook,
                event_id=r.event_id,
                replay=r.replay,
                at=r.at,
                attempt=r.attempt,
                tries=r.tries,
                body=bodies[r.event_id],
                deadline=deadline,
            )
            for r in rows
        ]

    def _endpoint(self, webhook: WebhookKey, row: WebhookRow) -> Endpoint:
        keys = signing_keys(self._ring, webhook[1], row.secrets, row.secret_ends, self._clock.now())
        return Endpoint(row.endpoint, keys, row.epoch)


def _live_epoch(row: WebhookRow | None) -> int:
    """Return the epoch whose deliveries count: those of any other are void; of a webhook that is disabled, or
    gone, all are."""
    if row is None:
        return DELETED_EPOCH
    return row.epoch if row.enabled else row.epoch + 1
