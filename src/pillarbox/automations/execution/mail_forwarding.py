"""Forwarding: what happens to mail becomes events of the recipients' contacts, which waits listen to.

Events leave the subscription and are stored among those of the team in one transaction. From there they are
distributed as others are: in order per contact, each once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import asyncpg
import msgspec

from pillarbox.automations.graphs.graph import MAIL_EVENTS
from pillarbox.events.sending import AddressedEvent, EventSender
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.postgres.database import transaction
from pillarbox.kernel.process import faults
from pillarbox.kernel.wire.email_address import EmailAddress
from pillarbox.kernel.work.queue_poll import SELDOM
from pillarbox.mail.message.address import AddressError, parse_mailbox
from pillarbox.webhooks.listening.subscriptions import EventSubscription, SubscribedEvent

PAUSE: Final = 0.1
"""Seconds between two looks: what is committed meanwhile costs one."""

LIMIT: Final = 200
"""Events that one transaction forwards."""

NAMES: Final = {kind: name for name, kind in MAIL_EVENTS.items()}

_encode = msgspec.json.Encoder().encode


class MailEventForwarder:
    """Forwards the events of all teams; in several processes, one works on a team at a time."""

    def __init__(self, pool: asyncpg.Pool, subscription: EventSubscription, events: EventSender) -> None:
        self._pool = pool
        self._subscription = subscription
        self._events = events
        self._wake = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Look soon."""
        self._wake.set()

    async def start(self) -> None:
        self._loop = asyncio.create_task(self._forever())

    async def stop(self, _: float) -> None:
        if self._loop is not None:
            self._loop.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loop

    async def look(self) -> int:
        """Forward what waits, of each team up to `LIMIT` events; returns how many."""
        return sum([await self._forward(team_id) for team_id in await self._subscription.teams(self._pool)])

    async def _forward(self, team_id: UUID) -> int:
        async with transaction(self._pool) as conn:
            taken = await self._subscription.take(conn, team_id, LIMIT)
            addressed = [event for subscribed in taken for event in addressed_events(subscribed)]
            if addressed:
                await self._events.store(conn, team_id, addressed)
            await faults.point("automations.forwarded")
        return len(taken)

    async def _forever(self) -> None:
        failures = LoopFailures("automations.mail_events")
        while True:
            self._wake.clear()
            if not await failures.attempt(self._look_until_empty()):
                await asyncio.sleep(failures.pause)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SELDOM):
                    await self._wake.wait()
            await asyncio.sleep(PAUSE)

    async def _look_until_empty(self) -> None:
        while await self.look():
            pass


def addressed_events(event: SubscribedEvent) -> Sequence[AddressedEvent]:
    """Return the event for each recipient that it is about. An email that was removed has none."""
    text = _encode(event.data).decode()
    found = []
    for mailbox in event.data.get("to", ()):
        with contextlib.suppress(AddressError):
            address = parse_mailbox(mailbox).key
            found.append(AddressedEvent(NAMES[event.kind], EmailAddress(address, None), text, event.at))
    return found
