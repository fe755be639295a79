"""Requests that wait for an inbox to change.

Each reads its page, sleeps until its inbox has changed or its time is over, and reads again. Sleeping costs a
task and an event. Those who want the same page read it together, and few read at a time
(`shared_readings.py`). So neither a change that concerns many nor many callers at once take the connections
of other requests.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar
from uuid import UUID

import asyncpg

from pillarbox.inboxes.prometheus import WAITING
from pillarbox.inboxes.waiting.changes import ChangeListener, ChangeNotifier
from pillarbox.inboxes.waiting.shared_readings import SharedReadings
from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.wire.problems import RateLimited, ServerOverloaded

T = TypeVar("T")

MOST_OF_TEAM: Final = 200
MOST: Final = 2000
"""Requests that wait in one process."""

CONNECTING_SECONDS: Final = 2.0
"""How long the first request waits for the connection that notifications come on."""

STEP_SECONDS: Final = 5.0
"""How often a request that waits looks whether its client is still there."""

REST_SECONDS: Final = 0.1
"""Between two readings of a page that did not change, in an inbox that changes all the time."""


@dataclass(frozen=True, slots=True)
class WaitingRequest:
    """For which inbox a request waits, how long at most, and whether anybody still wants the answer. `page`
    is the same for all requests of the inbox that are shown the same."""

    team_id: UUID
    inbox_id: UUID
    page: Hashable
    seconds: float
    is_gone: Callable[[], bool]


@dataclass(eq=False, slots=True)
class _InboxWaiter:
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Waiters:
    """The waiting requests of one process."""

    def __init__(self, pool: asyncpg.Pool, url: str) -> None:
        self._notifier = ChangeNotifier(pool, self.wake)
        self._listener = ChangeListener(url, self._notifier.token, self.wake, self._connected)
        self._is_listening = False
        self._ready = asyncio.Event()
        self._waiting: dict[UUID, set[_InboxWaiter]] = {}
        self._of_team: Counter[UUID] = Counter()
        self.readings = SharedReadings()
        self._is_closed = False
        WAITING.read = lambda: {(): self._of_team.total()}

    async def start(self) -> None:
        """Tell other processes from now on what changes here."""
        await self._notifier.start()

    def close(self) -> None:
        """Answer all who wait; nobody waits any more."""
        self._is_closed = True
        self._wake_all()

    async def stop(self) -> None:
        self.close()
        await self._notifier.stop()
        await self._listener.stop()

    def wake(self, inbox_ids: Iterable[UUID]) -> None:
        """Wake those who wait for one of these inboxes."""
        for inbox_id in inbox_ids:
            for waiter in self._waiting.get(inbox_id, ()):
                waiter.changed.set()

    async def first(
        self, waiting_request: WaitingRequest, read: Callable[[], Awaitable[T]], is_news: Callable[[T], bool]
    ) -> T:
        """Return the result of `read` as soon as it is news, and at the latest when the time is over.

        Raises RateLimited where too many requests of the team wait, and ServerOverloaded where too many of
        all teams do.
        """
        found = await self._read(waiting_request, read)
        if waiting_request.seconds <= 0 or is_news(found):
            return found
        time_limit.end_turn()
        with self._place(waiting_request) as waiter:
            await self._listen()
            return await self._watch(waiting_request, waiter, read, is_news)

    async def _watch(
        self,
        waiting_request: WaitingRequest,
        waiter: _InboxWaiter,
        read: Callable[[], Awaitable[T]],
        is_news: Callable[[T], bool],
    ) -> T:
        now = asyncio.get_running_loop().time
        end = now() + waiting_request.seconds
        while True:
            waiter.changed.clear()
            found = await self._read(waiting_request, read)
            if is_news(found) or now() >= end or self._is_closed or waiting_request.is_gone():
                return found
            await asyncio.sleep(min(REST_SECONDS, max(0.0, end - now())))
            while (
                not waiter.changed.is_set()
                and now() < end
                and not self._is_closed
                and not waiting_request.is_gone()
            ):
                await _wait_at_most(waiter.changed, min(STEP_SECONDS, end - now()))

    async def _read(self, waiting_request: WaitingRequest, read: Callable[[], Awaitable[T]]) -> T:
        return await self.readings.read(
            (waiting_request.team_id, waiting_request.inbox_id, waiting_request.page), read
        )

    @contextmanager
    def _place(self, waiting_request: WaitingRequest) -> Iterator[_InboxWaiter]:
        if self._of_team[waiting_request.team_id] >= MOST_OF_TEAM:
            raise RateLimited(f"At most {MOST_OF_TEAM} requests of a team may wait.", {"retry-after": "1"})
        if self._of_team.total() >= MOST:
            raise ServerOverloaded("Too many requests wait for changes.")
        waiter = _InboxWaiter()
        self._of_team[waiting_request.team_id] += 1
        of_inbox = self._waiting.setdefault(waiting_request.inbox_id, set())
        of_inbox.add(waiter)
        try:
            yield waiter
        finally:
            of_inbox.discard(waiter)
            if not of_inbox and self._waiting.get(waiting_request.inbox_id) is of_inbox:
                del self._waiting[waiting_request.inbox_id]
            self._of_team[waiting_request.team_id] -= 1
            if not self._of_team[waiting_request.team_id]:
                del self._of_team[waiting_request.team_id]

    async def _listen(self) -> None:
        """Hear what other processes tell: from the first request on that waits."""
        if not self._is_listening and not self._is_closed:
            self._is_listening = True
            await self._listener.start()
        if not self._ready.is_set():
            await _wait_at_most(self._ready, CONNECTING_SECONDS)

    def _connected(self) -> None:
        self._ready.set()
        self._wake_all()

    def _wake_all(self) -> None:
        for of_inbox in self._waiting.values():
            for waiter in of_inbox:
                waiter.changed.set()


async def _wait_at_most(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await event.wait()
    except TimeoutError:
        pass
