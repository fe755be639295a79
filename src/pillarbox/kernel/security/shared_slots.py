"""Slots of one size in the memory that all processes of a node share, found by a key.

A key hashes to a bucket of `WAYS` slots. A bucket is read and written under a byte-range lock of its own,
which a process that dies gives back by dying. A slot begins with its key and the instant of boot time when
it is over; from then on it is free. Only when more than `WAYS` live keys meet in one bucket does the one that
ends first make room; that needs tens of thousands of active keys.
"""

from __future__ import annotations

import fcntl
import struct
from typing import Final

from pillarbox.kernel.process import shared_memory

KEY_BYTES: Final = 16
WAYS: Final = 16


class SharedSlots:
    """The slots between `begin` and `end` of the memory behind `fd`."""

    def __init__(self, fd: int, slot: struct.Struct, begin: int, end: int) -> None:
        self._fd = fd
        self._slot = slot
        self._begin = begin
        self._bucket = slot.size * WAYS
        self._buckets = (end - begin) // self._bucket
        self.memory = shared_memory.attach(fd)

    def lock(self, key: bytes) -> int:
        """Lock the key's bucket, which nobody else reads or writes until `unlock`; return its offset."""
        offset = self._begin + (int.from_bytes(key[-8:], "little") % self._buckets) * self._bucket
        fcntl.lockf(self._fd, fcntl.LOCK_EX, self._bucket, offset)
        return offset

    def unlock(self, offset: int) -> None:
        fcntl.lockf(self._fd, fcntl.LOCK_UN, self._bucket, offset)

    def find(self, offset: int, key: bytes) -> tuple[int, bool]:
        """Return where the key's slot is and True, or where a new one may be written and False."""
        where = self.memory.find(key, offset, offset + self._bucket)
        if where >= 0 and (where - offset) % self._slot.size == 0:
            return where, True
        slots = range(offset, offset + self._bucket, self._slot.size)
        found = [(self._slot.unpack_from(self.memory, at), at) for at in slots]
        for values, at in found:
            if values[0] == key:
                return at, True
        return min(found, key=lambda slot: slot[0][1])[1], False
