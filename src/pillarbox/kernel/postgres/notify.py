"""Notifying other processes of work (architecture 2.5): coalesced NOTIFY after the commit, never in it.

A lost notification costs at most a second: a process of each host polls all queues once a second anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg

from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.postgres.database import Source, open_connection
from pillarbox.kernel.postgres.time_limit import unlimited

log = get("wakeup")

COALESCE_SECONDS = 0.02
RECONNECT_SECONDS = 2.0


class Notifier:
    """Notifies every process that listens on `channel`: at once, and then at most once in 20 ms."""

    def __init__(self, pool: asyncpg.Pool, channel: str) -> None:
        self._pool = pool
        self._channel = channel
        self._notifying: asyncio.Task[None] | None = None
        self._wanted = False
        self._failures = LoopFailures(f"wakeup.{channel}")

    def notify(self) -> None:
        """Request a notification, after a commit."""
        self._wanted = True
        if self._notifying is None or self._notifying.done():
            self._notifying = asyncio.create_task(self._notify_until_done(), context=unlimited())

    async def _notify_until_done(self) -> None:
        while self._wanted:
            self._wanted = False
            await self._failures.attempt(self._notify())
            await asyncio.sleep(max(COALESCE_SECONDS, self._failures.pause))

    async def _notify(self) -> None:
        await notify_processes(self._pool, self._channel)


async def notify_processes(source: Source, channel: str) -> None:
    """Notify every process that listens on `channel`."""
    await source.execute("SELECT pg_notify($1, '')", channel)


class NotifyListener:
    """Calls `notified` for every notification on `channel`, on a connection of its own."""

    def __init__(self, url: str, channel: str, notified: Callable[[], None]) -> None:
        self._url = url
        self._channel = channel
        self._notified = notified
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._forever())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _forever(self) -> None:
        failures = LoopFailures(f"wakeup.{self._channel}")
        while True:
            await failures.attempt(self._listen(failures.succeeded))
            await asyncio.sleep(max(RECONNECT_SECONDS, failures.pause))

    async def _listen(self, listening: Callable[[], None]) -> None:
        conn = await open_connection(self._url, application="pillarbox-listen")
        lost = asyncio.Event()
        try:
            conn.add_termination_listener(lambda _: lost.set())
            await conn.add_listener(self._channel, self._on_notify)
            listening()
            self._notified()
            await lost.wait()
        finally:
            conn.terminate()

    def _on_notify(self, *_: Any) -> None:
        self._notified()
