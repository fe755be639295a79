"""Fixed windows that all processes of one host share (conventions section 7, contract decision 20).

The counters live in the memory (`kernel/process/shared_memory.py`) whose descriptor the processes inherit.
A key hashes to a bucket of `WAYS` slots; a bucket is read and written under a byte-range lock of its own,
so a count is exact whichever process takes it, and a process that dies gives its lock back by dying. A slot
whose window is over is free. Only when more than `WAYS` live keys meet in one bucket does the oldest window
make room; that needs tens of thousands of active keys.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import struct
from typing import NamedTuple

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.process import shared_memory

SLOT = struct.Struct("<16sdI4x")
KEY_BYTES = 16
WAYS = 16
BUCKET = SLOT.size * WAYS
BUCKETS = shared_memory.SIZE // BUCKET
SECOND = 1.0


class Taken(NamedTuple):
    """The state of a window after one request asked for its place."""

    allowed: bool
    limit: int
    remaining: int
    reset: int


class Windows:
    """All counters of this host: every process attaches the same descriptor."""

    def __init__(self, fd: int, clock: Clock) -> None:
        self._fd = fd
        self._clock = clock
        self._memory = shared_memory.attach(fd)

    def take(self, key: bytes, limit: int, seconds: float = SECOND) -> Taken:
        """Count one request of `key`, or refuse it without counting.

        A window opens with the first request after the previous one ended (conventions section 7).
        """
        offset = (int.from_bytes(key[-8:], "little") % BUCKETS) * BUCKET
        fcntl.lockf(self._fd, fcntl.LOCK_EX, BUCKET, offset)
        try:
            now = self._clock.boottime()
            where, end, taken = self._find(offset, key)
            if end <= now:
                end, taken = now + seconds, 0
            allowed = taken < limit
            if allowed:
                taken += 1
                SLOT.pack_into(self._memory, where, key, end, taken)
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, BUCKET, offset)
        return Taken(allowed, limit, max(0, limit - taken), max(1, math.ceil(end - now)))

    def is_spent(self, key: bytes, limit: int) -> bool:
        """Whether the window of `key` has no place left; counts nothing."""
        end, taken = self._read(key)
        return end > self._clock.boottime() and taken >= limit

    def show(self, key: bytes, number: int, seconds: float) -> None:
        """Let all processes read `number` under `key` for so long."""
        offset = (int.from_bytes(key[-8:], "little") % BUCKETS) * BUCKET
        fcntl.lockf(self._fd, fcntl.LOCK_EX, BUCKET, offset)
        try:
            where, _, _ = self._find(offset, key)
            SLOT.pack_into(self._memory, where, key, self._clock.boottime() + seconds, number)
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, BUCKET, offset)

    def shown(self, key: bytes) -> int:
        """The number that some process shows under `key`; 0 where none does."""
        end, number = self._read(key)
        return number if end > self._clock.boottime() else 0

    def _read(self, key: bytes) -> tuple[float, int]:
        offset = (int.from_bytes(key[-8:], "little") % BUCKETS) * BUCKET
        fcntl.lockf(self._fd, fcntl.LOCK_EX, BUCKET, offset)
        try:
            return self._find(offset, key)[1:]
        finally:
            fcntl.lockf(self._fd, fcntl.LOCK_UN, BUCKET, offset)

    def _find(self, offset: int, key: bytes) -> tuple[int, float, int]:
        """The key's slot with its end and count, or the slot that a new window may take."""
        where = self._memory.find(key, offset, offset + BUCKET)
        if where >= 0 and (where - offset) % SLOT.size == 0:
            _, end, taken = SLOT.unpack_from(self._memory, where)
            return where, end, taken
        slots = range(offset, offset + BUCKET, SLOT.size)
        found = [(SLOT.unpack_from(self._memory, at), at) for at in slots]
        for (held, end, taken), at in found:
            if held == key:
                return at, end, taken
        return min(found, key=lambda slot: slot[0][1])[1], 0.0, 0


def key_for(text: str) -> bytes:
    """A key for things that are not UUIDs: addresses, for instance."""
    return hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest()
