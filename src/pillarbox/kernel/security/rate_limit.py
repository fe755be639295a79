"""Fixed windows that all processes of one node share (conventions section 7, contract decision 20).

The counters live in the memory (`kernel/process/shared_memory.py`) whose descriptor the processes inherit,
and are read and written under a lock (`shared_slots`), so a count is exact whichever process takes it. The
limit of a team is shared with other nodes as well: `team_rate`.
"""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Final, NamedTuple

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.security.shared_slots import KEY_BYTES, SharedSlots

SLOT: Final = struct.Struct("<16sdI4x")
SECOND: Final = 1.0


class WindowState(NamedTuple):
    """The state of a window after one request asked for its place."""

    allowed: bool
    limit: int
    remaining: int
    reset: int


class Windows:
    """All counters of this node: every process attaches the same descriptor."""

    def __init__(self, fd: int, clock: Clock) -> None:
        self._clock = clock
        self._slots = SharedSlots(fd, SLOT, 0, shared_memory.WINDOWS)
        self._memory = self._slots.memory

    def take(self, key: bytes, limit: int, seconds: float = SECOND) -> WindowState:
        """Count one request of `key`, or refuse it without counting.

        A window opens with the first request after the previous one ended (conventions section 7).
        """
        offset = self._slots.lock(key)
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
            self._slots.unlock(offset)
        return WindowState(allowed, limit, max(0, limit - taken), max(1, math.ceil(end - now)))

    def give_back(self, key: bytes) -> None:
        """Take back one count of `key`, where its window is still open."""
        offset = self._slots.lock(key)
        try:
            where, end, taken = self._find(offset, key)
            if end > self._clock.boottime() and taken:
                SLOT.pack_into(self._memory, where, key, end, taken - 1)
        finally:
            self._slots.unlock(offset)

    def is_spent(self, key: bytes, limit: int) -> bool:
        """Return whether the window of `key` has no place left; counts nothing."""
        end, taken = self._read(key)
        return end > self._clock.boottime() and taken >= limit

    def wait(self, key: bytes, limit: int) -> int:
        """Return the seconds until the window of `key` has a place again; 0 where it has one."""
        end, taken = self._read(key)
        return max(0, math.ceil(end - self._clock.boottime())) if taken >= limit else 0

    def show(self, key: bytes, number: int, seconds: float) -> None:
        """Let all processes read `number` under `key` for so long."""
        offset = self._slots.lock(key)
        try:
            where, _, _ = self._find(offset, key)
            SLOT.pack_into(self._memory, where, key, self._clock.boottime() + seconds, number)
        finally:
            self._slots.unlock(offset)

    def shown(self, key: bytes) -> int:
        """Return the number that some process shows under `key`; 0 where none does."""
        end, number = self._read(key)
        return number if end > self._clock.boottime() else 0

    def _read(self, key: bytes) -> tuple[float, int]:
        """Return the boot time at which the key's window ends, and its count; zeros where it has none."""
        offset = self._slots.lock(key)
        try:
            return self._find(offset, key)[1:]
        finally:
            self._slots.unlock(offset)

    def _find(self, offset: int, key: bytes) -> tuple[int, float, int]:
        """Return the key's slot with the end and count of its window, or a slot that a new one may take."""
        where, is_found = self._slots.find(offset, key)
        if not is_found:
            return where, 0.0, 0
        _, end, taken = SLOT.unpack_from(self._memory, where)
        return where, end, taken


def key_for(text: str) -> bytes:
    """Return a key for things that are not UUIDs: addresses, for instance."""
    return hashlib.blake2b(text.encode(), digest_size=KEY_BYTES).digest()
