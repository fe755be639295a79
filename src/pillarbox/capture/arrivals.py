"""Finding captured mail, and waiting for it, in whichever process it arrives.

A process that stores mail notifies the others after its commit (NOTIFY on `CHANNEL`); who waits also queries
twice a second, so a lost notification costs half a second.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import asyncpg

from pillarbox.capture import queries
from pillarbox.capture.queries import CapturedRow
from pillarbox.kernel.clock import Clock
from pillarbox.kernel.ids import EPOCH, MICROSECOND, uuid7
from pillarbox.kernel.postgres.notify import Notifier
from pillarbox.kernel.wire.paging import Page
from pillarbox.kernel.wire.problems import ServerOverloaded

CHANNEL = "pillarbox_capture"
LOOK_EVERY = 0.5
MOST_WAITING = 50
ANY = UUID(int=0)

LATE = timedelta(seconds=60)
"""Ids are made before their commit, so whoever waits also looks at ids a little older than itself."""

_SPECIAL = re.compile(r"([\\%_])")
_WHOLE_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")


@dataclass(frozen=True, slots=True)
class Filters:
    """The conditions on a mail, compared without case.

    `to` and `sender` are a whole address when they have the form of one, and a part of one otherwise;
    `subject` is a part of the subject; `anything` is a part of any of the three.
    """

    anything: str | None = None
    to: str | None = None
    sender: str | None = None
    subject: str | None = None

    @property
    def patterns(self) -> tuple[Sequence[str] | None, ...]:
        """The patterns in the order of `queries.search`."""
        return (
            _part(self.anything),
            _address(self.to),
            _address(self.sender),
            _part(self.subject),
        )


class Arrivals:
    """Finds mails, and wakes requests that wait for one."""

    def __init__(self, pool: asyncpg.Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._notifier = Notifier(pool, CHANNEL)
        self._arrival = asyncio.Event()
        self._waiting = 0
        self._closed = False

    def announce(self) -> None:
        """Notify every process that a mail was committed."""
        self.wake_waiting()
        self._notifier.notify()

    def wake_waiting(self) -> None:
        """Wake the requests that wait in this process; called for every notification on `CHANNEL`."""
        arrival, self._arrival = self._arrival, asyncio.Event()
        arrival.set()

    def close(self) -> None:
        """End all waiting."""
        self._closed = True
        self.wake_waiting()

    async def find(self, filters: Filters, page: Page, lowest: UUID = ANY) -> list[CapturedRow]:
        """Return the mails of a page, and one more where there are more."""
        return await queries.search(self._pool, page, filters.patterns, lowest)

    async def wait(self, filters: Filters, page: Page, seconds: float) -> list[CapturedRow]:
        """Return what `find` answers, as soon as it is not empty and at the latest after `seconds`.

        Raises ServerOverloaded when too many wait already.
        """
        found = await self.find(filters, page)
        if found or seconds <= 0:
            return found
        if self._waiting >= MOST_WAITING:
            raise ServerOverloaded("Too many requests wait for a mail.")
        self._waiting += 1
        try:
            return await self._watch(filters, page, seconds)
        finally:
            self._waiting -= 1

    async def _watch(self, filters: Filters, page: Page, seconds: float) -> list[CapturedRow]:
        lowest = uuid7((self._clock.now() - LATE - EPOCH) // MICROSECOND, bytes(8))
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while (left := end - clock()) > 0 and not self._closed:
            arrival = self._arrival
            found = await self.find(filters, page, lowest)
            if found:
                return found
            await _wait_at_most(arrival, min(left, LOOK_EVERY))
        return await self.find(filters, page)


async def _wait_at_most(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


def _part(text: str | None) -> list[str] | None:
    return [f"%{_literal(text)}%"] if text else None


def _address(text: str | None) -> list[str] | None:
    """Return the patterns of an address on its own or with a name before it."""
    if not text or not _WHOLE_ADDRESS.fullmatch(text):
        return _part(text)
    plain = _literal(text)
    return [plain, f"%<{plain}>"]


def _literal(text: str) -> str:
    """Return a pattern that only this text matches."""
    return _SPECIAL.sub(r"\\\1", text)
