"""Passwords: argon2id, at most four at once on a machine (SEC-02, docs/decisions/0106).

A hash costs 19 MiB and some 20 ms of a core, so whoever may ask for one without limit could stop the machine.
The processes of a machine share four places: a lock on a byte behind the end of the memory that they share.
A process that dies gives its places back. Whoever waits longer than `PATIENCE` is told to come again.
"""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from enum import Enum
from functools import cache
from importlib import resources
from typing import Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.wire.problems import ServerOverloaded

T = TypeVar("T")

AT_ONCE: Final = 4
MOST_WAITING: Final = 100
PATIENCE: Final = 5.0
PAUSE: Final = 0.01

MEMORY_KIB: Final = 19 * 1024
PASSES: Final = 2
LANES: Final = 1

SHORTEST: Final = 10
LONGEST: Final = 128

OF_NOBODY: Final = (
    "$argon2id$v=19$m=19456,t=2,p=1$DBwoL8MbzKmoRAIu9XnbMg$KSakw7c5BtMlbvIMnwE3rLxvELN7j6Z5/1NqTJZQo/4"
)
"""The hash that a password is compared with where nobody has the address: it takes the same time."""


class PasswordHashingBusy(ServerOverloaded):
    def __init__(self) -> None:
        super().__init__("Too many people are logging in at this moment. Please try again.", 5)


class Passwords:
    """Hashes and compares passwords in threads."""

    def __init__(self, fd: int, clock: Clock) -> None:
        self._fd = fd
        self._clock = clock
        self._hasher = PasswordHasher(time_cost=PASSES, memory_cost=MEMORY_KIB, parallelism=LANES)
        self._threads = ThreadPoolExecutor(AT_ONCE, "pillarbox-password")
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        self._held: set[int] = set()

    async def hashed(self, password: str) -> str:
        """Return the hash of a password, to be stored. Raises PasswordHashingBusy."""
        return await self._do(lambda: self._hasher.hash(password))

    async def matches(self, stored: str | None, password: str) -> bool:
        """Return whether it is the password; without a stored hash it is not, which takes the same time.
        Raises PasswordHashingBusy."""
        known = await self._do(lambda: self._verified(stored or OF_NOBODY, password))
        return known and stored is not None

    def is_outdated(self, stored: str) -> bool:
        """Return whether the hash has other settings than new ones have."""
        return self._hasher.check_needs_rehash(stored)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _verified(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False

    async def _do(self, work: Callable[[], T]) -> T:
        if self._waiting >= MOST_WAITING:
            raise PasswordHashingBusy
        until = self._clock.boottime() + PATIENCE
        self._waiting += 1
        try:
            async with self._turns, self._place(until):
                self._waiting -= 1
                try:
                    return await asyncio.get_running_loop().run_in_executor(self._threads, work)
                finally:
                    self._waiting += 1
        finally:
            self._waiting -= 1

    @asynccontextmanager
    async def _place(self, until: float) -> AsyncIterator[None]:
        """Hold one of the machine's places for hashing; PasswordHashingBusy where none is free in time."""
        while (taken := self._take()) is None:
            if self._clock.boottime() >= until:
                raise PasswordHashingBusy
            await self._clock.sleep(PAUSE)
        try:
            yield
        finally:
            self._held.discard(taken)
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, shared_memory.SIZE + taken)

    def _take(self) -> int | None:
        # A process may take its own lock again, so it must know which places are its own.
        for place in range(AT_ONCE):
            if place in self._held:
                continue
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, shared_memory.SIZE + place)
            except OSError:
                continue
            self._held.add(place)
            return place
        return None


@cache
def _commonest() -> frozenset[str]:
    found = resources.files("pillarbox.people").joinpath("common_passwords.txt")
    return frozenset(found.read_text(encoding="utf-8").split())


def is_common(password: str) -> bool:
    """Return whether many people use it: the list, also with capitals, or one or two characters over and
    over."""
    plain = password.strip().lower()
    return plain in _commonest() or plain.rstrip("0123456789!?.") in _commonest() or len(set(plain)) < 4


class Complaint(Enum):
    """Why a new password is refused."""

    SHORT = "short"
    LONG = "long"
    COMMON = "common"
    OWN = "own"


def complaint(password: str, *own: str | None) -> Complaint | None:
    """Return the problem with a new password, if any; `own` are texts that others know of the person."""
    if len(password) < SHORTEST:
        return Complaint.SHORT
    if len(password) > LONGEST:
        return Complaint.LONG
    if is_common(password):
        return Complaint.COMMON
    plain = password.strip().lower()
    if any(text and plain in (text.lower(), text.lower().partition("@")[0]) for text in own):
        return Complaint.OWN
    return None
