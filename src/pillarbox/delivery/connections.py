"""Open SMTP sessions that wait for the next mail (OUT-13).

A connection is handed to one attempt at a time and comes back only when the outcome of that attempt is
committed, so at most one mail per connection can be uncertain after a crash.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from pillarbox.mail.smtp_client import ConnectFailed, Connection, TlsMode

IDLE_SECONDS = 5.0
MOST_PER_CONNECTION = 100


class Address(NamedTuple):
    """What a session is good for: another policy or name needs another session."""

    server_name: str
    ip: str
    port: int
    tls: TlsMode


Open = Callable[[Address], Awaitable[Connection | ConnectFailed]]


class Connections:
    """Idle sessions by address."""

    def __init__(self, open_: Open) -> None:
        self._open = open_
        self._idle: dict[Address, deque[tuple[Connection, asyncio.TimerHandle]]] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    async def get(self, address: Address, *, fresh: bool = False) -> Connection | ConnectFailed:
        """A session for one mail: an idle one unless `fresh` is asked for."""
        while not fresh and (waiting := self._idle.get(address)):
            connection, timer = waiting.pop()
            timer.cancel()
            if not waiting:
                del self._idle[address]
            if connection.is_reusable:
                return connection
            connection.abort()
        return await self._open(address)

    def put(self, address: Address, connection: Connection) -> None:
        """Take back a session whose last outcome is committed."""
        if not connection.is_reusable or connection.transactions >= MOST_PER_CONNECTION:
            self._part(connection)
            return
        timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._expire, address, connection)
        self._idle.setdefault(address, deque()).append((connection, timer))

    async def close(self) -> None:
        """Say goodbye everywhere."""
        for waiting in self._idle.values():
            for connection, timer in waiting:
                timer.cancel()
                self._part(connection)
        self._idle.clear()
        if self._leaving:
            await asyncio.wait(tuple(self._leaving), timeout=5)

    def _expire(self, address: Address, connection: Connection) -> None:
        waiting = self._idle.get(address)
        if waiting is None:
            return
        kept = deque(entry for entry in waiting if entry[0] is not connection)
        if len(kept) == len(waiting):
            return
        if kept:
            self._idle[address] = kept
        else:
            del self._idle[address]
        self._part(connection)

    def _part(self, connection: Connection) -> None:
        task = asyncio.create_task(connection.quit())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
