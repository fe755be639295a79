"""Time-ordered ids.

An id and the `created_at` beside it come from one clock reading, so the order of ids is the order of
creation and a cursor is a position (design 2.3). Layout of RFC 9562 section 5.7: 48 bits of
milliseconds, then twelve bits that hold the microseconds inside that millisecond, then random bits.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from pillarbox.kernel.clock import Clock

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Stamp(NamedTuple):
    """A new id with the instant that it was made."""

    id: UUID
    at: datetime


class Ids:
    """Makes ids that strictly increase within this process."""

    def __init__(self, clock: Clock, random_bits: Callable[[int], int] = secrets.randbits) -> None:
        self._clock = clock
        self._random_bits = random_bits
        self._last = 0

    def stamp(self) -> Stamp:
        """A new UUIDv7 and the microsecond it stands for."""
        micros = (self._clock.now() - EPOCH) // MICROSECOND
        if micros <= self._last:
            micros = self._last + 1
        self._last = micros
        return Stamp(uuid7(micros, self._random_bits(62)), EPOCH + timedelta(microseconds=micros))

    def new(self) -> UUID:
        """A new UUIDv7 where its time is of no interest."""
        return self.stamp().id


def uuid7(micros: int, tail: int) -> UUID:
    """The UUIDv7 of an instant (microseconds since 1970) and 62 random bits."""
    millis, fraction = divmod(micros, 1000)
    return UUID(int=(millis << 80) | (0x7 << 76) | (fraction << 64) | (0x2 << 62) | tail)


def base62(number: int, length: int) -> str:
    """`number` in base 62, left-padded with zeros to `length`; ASCII order is number order."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(BASE62[digit])
    return "".join(reversed(digits))
