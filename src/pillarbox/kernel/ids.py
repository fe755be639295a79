"""Time-ordered ids.

An id and the `created_at` beside it come from one clock reading, so the order of ids is the order of
creation and a cursor is a position (architecture 2.3). Layout of RFC 9562 section 5.7: 48 bits of
milliseconds, then twelve bits that hold the microseconds inside that millisecond, then random bits.

Where the clock is set back by a little, ids run ahead of it until it has caught up, and their order holds.
Set back by more than `MOST_AHEAD`, they follow it: 62 random bits keep them apart from those of the same
microsecond that were made before. So the time in an id may be ahead of the clock, and nothing is due by it:
whatever asks when to begin takes `now`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID
from weakref import WeakSet
from zlib import crc32

# A UUID in every respect, made and encoded in C.
from asyncpg.pgproto.pgproto import UUID as FastUUID  # noqa: N811 - a class in capitals

from pillarbox.kernel.clock import Clock

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
_TAIL = struct.Struct(">Q")
_WHOLE = struct.Struct(">QQ")
_FREE = (1 << 62) - 1
_VARIANT = 1 << 63
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BASE62_VALUE = {digit: value for value, digit in enumerate(BASE62)}
BASE62_PAIRS = [first + second for first in BASE62 for second in BASE62]
"""Two digits at once take half the divisions."""


MOST_AHEAD = 10_000_000
"""Microseconds that ids may be ahead of the clock."""


class Stamp(NamedTuple):
    """A new id with the instant that it was made."""

    id: UUID
    at: datetime


class Ids:
    """Makes ids that strictly increase within this process, unless the clock is set back by more than
    `MOST_AHEAD`."""

    def __init__(self, clock: Clock, random_bytes: Callable[[int], bytes] | None = None) -> None:
        self._clock = clock
        self._random_bytes = random_bytes or RandomBytes()
        self._last = 0

    def stamp(self) -> Stamp:
        """Return a new UUIDv7 and the microsecond it stands for."""
        at = self._clock.now()
        # Seconds as a float tell microseconds apart until the year 2106.
        micros = round(at.timestamp() * 1e6)
        if micros <= self._last <= micros + MOST_AHEAD:
            micros = self._last + 1
            at = EPOCH + timedelta(microseconds=micros)
        self._last = micros
        return Stamp(uuid7(micros, self._random_bytes(8)), at)

    def several(self, count: int) -> list[UUID]:
        """Return new UUIDv7s of one moment, where their time is of no interest."""
        first = round(self._clock.now().timestamp() * 1e6)
        if first <= self._last <= first + MOST_AHEAD:
            first = self._last + 1
        self._last = first + count - 1
        return [uuid7(micros, self._random_bytes(8)) for micros in range(first, first + count)]

    def now(self) -> datetime:
        """Return the time of the clock; due times are computed from it, never from the time in an id."""
        return self._clock.now()

    def token(self) -> str:
        """Return 128 random bits in hexadecimal."""
        return self._random_bytes(16).hex()

    def new(self) -> UUID:
        """Return a new UUIDv7 where its time is of no interest."""
        return self.stamp().id


class RandomBytes:
    """Bytes of the operating system's randomness, asked for many at a time. A fork inherits none of them."""

    SUPPLY = 8192

    def __init__(self) -> None:
        self.forget()
        _random_bytes.add(self)

    def forget(self) -> None:
        """Drop the random bytes that were fetched before."""
        self._supply = b""
        self._at = 0

    def __call__(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._supply):
            self._supply = os.urandom(max(self.SUPPLY, count))
            self._at, end = 0, count
        found = self._supply[self._at : end]
        self._at = end
        return found


_random_bytes: WeakSet[RandomBytes] = WeakSet()


def _forget_all() -> None:
    for supply in _random_bytes:
        supply.forget()


os.register_at_fork(after_in_child=_forget_all)


def uuid7(micros: int, tail: bytes) -> UUID:
    """Return the UUIDv7 of an instant (microseconds since 1970) and eight random bytes (two bits
    go unused)."""
    millis, fraction = divmod(micros, 1000)
    (chance,) = _TAIL.unpack(tail)
    made: UUID = FastUUID(_WHOLE.pack(millis << 16 | 0x7000 | fraction, chance & _FREE | _VARIANT))
    return made


def first_id(instant: datetime) -> UUID:
    """Return the least id of an instant; every id of an earlier one is below it. Nothing is older
    than 1970."""
    return UUID(int=uuid7(max(0, (instant - EPOCH) // MICROSECOND), bytes(8)).int)


TAG_DIGITS = 27
TAG_CHECK = 32
"""The low bits of a tagged id are a checksum: 160 bits fill 27 digits, and what was mistyped is no id."""


def tagged(prefix: str, id: UUID) -> str:
    """Return a UUID as the wire shows it for rows of logs: `prefix` and 27 digits of base 62, in the
    same order."""
    return prefix + base62(id.int << TAG_CHECK | crc32(id.bytes), TAG_DIGITS)


def untagged(prefix: str, text: str) -> UUID | None:
    """Return the UUID that `tagged` made this text from, or None for any other text."""
    digits = text.removeprefix(prefix)
    if len(digits) != TAG_DIGITS or len(text) != len(prefix) + TAG_DIGITS:
        return None
    number = 0
    for digit in digits:
        value = BASE62_VALUE.get(digit)
        if value is None:
            return None
        number = number * 62 + value
    if number >> TAG_CHECK >= 1 << 128:
        return None
    found = UUID(int=number >> TAG_CHECK)
    return found if number & 0xFFFFFFFF == crc32(found.bytes) else None


def base62(number: int, length: int) -> str:
    """Return `number` in base 62, left-padded with zeros to `length`; ASCII order is number order."""
    pairs = []
    for _ in range((length + 1) // 2):
        number, pair = divmod(number, 62 * 62)
        pairs.append(BASE62_PAIRS[pair])
    pairs.reverse()
    return "".join(pairs)[-length:]
