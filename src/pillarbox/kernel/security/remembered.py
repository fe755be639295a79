"""A short cache of what the database says of credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.postgres.time_limit import TimeLimit, retrieve_exception, shared, unlimited

REMEMBERED_SECONDS: Final = 0.25
ASKED_AHEAD: Final = 0.1
"""So long before a value expires, a caller starts a new look-up without waiting for it. Otherwise all callers
during the look-up would wait, four times a second."""

MOST_REMEMBERED: Final = 10_000

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedCache(Generic[K, V]):
    """Looks up a value by its name, once for all callers at a time. A value that was found is kept for a
    quarter of a second; a missing one is not."""

    def __init__(self, clock: Clock, ask: Callable[[K], Awaitable[V | None]]) -> None:
        self._clock = clock
        self._ask_for = ask
        self._known: dict[K, tuple[float, V]] = {}
        self._asking: dict[K, asyncio.Task[V | None]] = {}

    async def find(self, name: K) -> V | None:
        """Return the value of that name, found at most a quarter of a second ago; None if there is none."""
        known = self._known.get(name)
        if known is not None:
            left = known[0] - self._clock.boottime()
            if left > ASKED_AHEAD:
                return known[1]
            if left > 0:
                self._asked(name)
                return known[1]
        return await shared(self._asked(name))

    def forget(self, is_meant: Callable[[K, V], bool]) -> None:
        """Ask again for these; call it after the commit of a change."""
        for name, (_, value) in list(self._known.items()):
            if is_meant(name, value):
                del self._known[name]
        self._asking.clear()

    def _asked(self, name: K) -> asyncio.Task[V | None]:
        """Return the running look-up of that name, a new one if there is none; a caller that stops waiting
        does not end it."""
        asking = self._asking.get(name)
        if asking is None:
            asking = self._asking[name] = asyncio.create_task(self._ask(name), context=unlimited())
            asking.add_done_callback(retrieve_exception)
        return asking

    async def _ask(self, name: K) -> V | None:
        me = asyncio.current_task()
        asked_at = self._clock.boottime()
        try:
            with TimeLimit():
                found = await self._ask_for(name)
            if found is not None and self._asking.get(name) is me:
                self._remember(name, asked_at + REMEMBERED_SECONDS, found)
        finally:
            if self._asking.get(name) is me:
                del self._asking[name]
        return found

    def _remember(self, name: K, until: float, value: V) -> None:
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        self._known[name] = (until, value)
