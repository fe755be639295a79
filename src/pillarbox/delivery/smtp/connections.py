"""Open SMTP sessions that wait for the next mail (OUT-13).

A connection is handed to one attempt at a time, and comes back only when the outcome of that attempt is
committed. So at most one mail per connection can be uncertain after a crash.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from pillarbox.mail.smtp.client import ConnectFailed, SmtpConnection, TlsMode

IDLE_SECONDS = 5.0
MOST_PER_CONNECTION = 100
CLOCK_STEP = 0.01
"""A timer may fire a little before its time by the clock that is read then."""


class ConnectionKey(NamedTuple):
    """The key under which a session is kept: another policy or name needs another session."""

    server_name: str
    ip: str
    port: int
    tls: TlsMode


Open = Callable[[ConnectionKey], Awaitable[SmtpConnection | ConnectFailed]]


class Connections:
    """Idle sessions by address. One timer closes those that are idle for too long."""

    def __init__(self, open_: Open) -> None:
        self._open = open_
        self._idle: dict[ConnectionKey, deque[tuple[SmtpConnection, float]]] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    async def get(self, address: ConnectionKey, *, fresh: bool = False) -> SmtpConnection | ConnectFailed:
        """Return a session for one mail: an idle one unless `fresh` is asked for."""
        while not fresh and (waiting := self._idle.get(address)):
            connection, _ = waiting.pop()
            if not waiting:
                del self._idle[address]
            if connection.is_reusable:
                return connection
            connection.abort()
        return await self._open(address)

    def put(self, address: ConnectionKey, connection: SmtpConnection) -> None:
        """Take back a session whose last outcome is committed."""
        if not connection.is_reusable or connection.transactions >= MOST_PER_CONNECTION:
            self._part(connection)
            return
        loop = asyncio.get_running_loop()
        self._idle.setdefault(address, deque()).append((connection, loop.time() + IDLE_SECONDS))
        if self._sweep is None:
            self._sweep = loop.call_later(IDLE_SECONDS, self._expire)

    async def close(self) -> None:
        """Close all idle sessions with QUIT."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        for waiting in self._idle.values():
            for connection, _ in waiting:
                self._part(connection)
        self._idle.clear()
        if self._leaving:
            await asyncio.wait(tuple(self._leaving), timeout=5)

    def _expire(self) -> None:
        """Close sessions that were idle for too long; each address's are in the order of their ends."""
        loop = asyncio.get_running_loop()
        now = loop.time() + CLOCK_STEP
        for address, waiting in list(self._idle.items()):
            while waiting and waiting[0][1] <= now:
                self._part(waiting.popleft()[0])
            if not waiting:
                del self._idle[address]
        ends = [waiting[0][1] for waiting in self._idle.values()]
        self._sweep = loop.call_at(min(ends), self._expire) if ends else None

    def _part(self, connection: SmtpConnection) -> None:
        task = asyncio.create_task(connection.quit())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
