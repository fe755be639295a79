"""Readings of the database that many requests want at the same moment.

Requests that want the same share one reading. One that arrives while the reading waits for its turn joins it;
one that arrives later waits for the next reading, because it may want what was committed since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar

from pillarbox.kernel.postgres import time_limit
from pillarbox.kernel.wire.problems import ServerOverloaded

T = TypeVar("T")

READS_AT_ONCE: Final = 4
MOST: Final = 2000
"""Requests of one process that wait for a reading; the next one is refused at once."""


class SharedReadings:
    """At most `READS_AT_ONCE` run at a time, however many requests wait for one."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(READS_AT_ONCE)
        self._queued: dict[Hashable, asyncio.Task[Any]] = {}
        self._waiting = 0

    async def read(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a reading that begins after this call. Calls with an equal `key` may share one
        object. Raises ServerOverloaded where too many wait, and the exceptions of `read`."""
        if self._waiting >= MOST:
            raise ServerOverloaded("Too many requests wait for changes.")
        task = self._queued.get(key)
        if task is None:
            task = asyncio.create_task(self._run(key, read))
            task.add_done_callback(_retrieve)
            self._queued[key] = task
        self._waiting += 1
        try:
            # A caller that leaves does not end it for the others.
            found: T = await asyncio.shield(task)
        finally:
            self._waiting -= 1
        return found

    async def _run(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        async with self._turns:
            del self._queued[key]
            time_limit.begin()
            return await read()


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception, since no caller may be left that does."""
    if not task.cancelled():
        task.exception()
