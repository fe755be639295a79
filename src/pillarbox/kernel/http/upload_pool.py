"""A share of the memory for request bodies, and the bodies that hold some of it (see
`kernel.http.uploads`)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable

RATE_SECONDS = 0.5
"""A rate is measured over about the last half second."""

STALLED_SECONDS = 1.0
"""A client that sends nothing for so long has stalled; no upload is judged earlier."""


class PooledUpload:
    """One body on its way, of which `held` bytes are counted.

    It is expected to become `first` bytes and, once it is larger than that, `most`; `due` is when it must be
    complete.
    """

    def __init__(self, first: int, limit: int, now: float, due: float, pools: Iterable[Pool] = ()) -> None:
        self.first = first
        self.most = limit
        self.due = due
        self.pools = tuple(pools)
        self.held = 0
        self.received = 0
        self.wanted = 0
        self.is_complete = False
        self.turn: asyncio.Future[None] | None = None
        self.timer: asyncio.Timeout | None = None
        self.refusal: str | None = None
        self._judged_from = now + STALLED_SECONDS
        self._waited = 0.0
        self._waits_since = now
        self._rate = 0.0
        self._rate_at = now
        for pool in self.pools:
            pool.join(self)

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for space."""
        return self.turn is not None and not self.turn.done()

    def blocker(self, held: int) -> Pool | None:
        """Return the pool that does not let it hold so much; None where it may."""
        for pool in self.pools:
            if not pool.permits(self, held):
                return pool
        return None

    def grow(self, held: int) -> None:
        """Count it with so many bytes from now on."""
        for pool in self.pools:
            pool.count(self, held)
        self.held = held

    def complete(self) -> None:
        """Note that nothing more comes."""
        self.is_complete, self.refusal = True, None
        for pool in self.pools:
            pool.coming -= 1

    def end(self) -> None:
        """Count it no longer; once is enough."""
        for pool in self.pools:
            pool.leave(self)
        self.pools = ()

    def claim(self, held: int) -> int:
        """Return the size that the body is expected to reach, in bytes, when `held` have come."""
        if self.is_complete:
            return held
        return self.first if held <= self.first else self.most

    def add_received(self, size: int, now: float) -> None:
        """Note that so many bytes have come."""
        self.received += size
        self._rate = self.rate(now) + size / RATE_SECONDS
        self._rate_at = now

    def seconds_left(self, now: float) -> float:
        """Return how long the rest takes at the recent rate."""
        if now - self._rate_at > STALLED_SECONDS:
            return math.inf
        rest = self.claim(max(self.held, self.received)) - self.received
        return max(rest, 0) / max(self.rate(now), 1.0)

    def is_late(self, now: float, within: float = math.inf) -> bool:
        """Return whether it comes so slowly that it will not be complete in time, or not within so
        many seconds."""
        if self.is_complete or self.turn is not None or now < self._judged_from:
            return False
        return self.seconds_left(now) > min(self.due - now, within)

    def waits(self, turn: asyncio.Future[None], now: float) -> None:
        """Begin to wait for space."""
        self.turn, self._waits_since = turn, now

    def goes_on(self, now: float) -> None:
        """End the wait; what it did not send meanwhile does not make it slow."""
        self._waited = self.waited(now)
        self.turn, self._judged_from = None, now + STALLED_SECONDS

    def waited(self, now: float) -> float:
        """Return the seconds for which it has waited for space in total."""
        return self._waited + (now - self._waits_since if self.turn is not None else 0.0)

    def refuse(self, why: str) -> None:
        """End the reading, wherever it stands."""
        if self.refusal is None and self.timer is not None:
            self.refusal = why
            self.timer.reschedule(0.0)

    def rate(self, now: float) -> float:
        """Return how many bytes come in a second, lately."""
        return self._rate * math.exp((self._rate_at - now) / RATE_SECONDS)


class Pool:
    """So many bytes, for at most so many bodies that are not yet complete.

    A body that is larger than all of it counts with all of it.
    """

    def __init__(self, total: int, limit: int) -> None:
        self.uploads: dict[PooledUpload, None] = {}
        self.coming = 0
        self._total = total
        self._most = limit
        self._free = total

    @property
    def is_full(self) -> bool:
        """Whether as many bodies as may be are not yet complete."""
        return self.coming >= self._most

    def join(self, upload: PooledUpload) -> None:
        """Count one more."""
        self.uploads[upload] = None
        self.coming += 1

    def permits(self, upload: PooledUpload, held: int) -> bool:
        """Return whether the upload may hold so much.

        Afterwards there must be an order in which all can be completed, each with what is free and what those
        before it give back (the banker's algorithm): two halves never block each other.
        """
        free = self._free - self._part(held) + self._part(upload.held)
        rest = self._part(upload.claim(held)) - self._part(held)
        if free < 0:
            return False
        if rest <= free:
            return True
        others = [other for other in self.uploads if other is not upload]
        needs = [(self._rest(other), self._part(other.held)) for other in others]
        for need, returned in sorted([*needs, (rest, self._part(held))]):
            if need > free:
                return False
            free += returned
        return True

    def count(self, upload: PooledUpload, held: int) -> None:
        """Set the share of an upload to so many bytes."""
        self._free -= self._part(held) - self._part(upload.held)

    def leave(self, upload: PooledUpload) -> None:
        """Count it no longer."""
        del self.uploads[upload]
        self.coming -= not upload.is_complete
        self._free += self._part(upload.held)

    def slowest(self, now: float) -> PooledUpload | None:
        """Return the upload that should go for another one: of those that will not be complete in time
        the one that takes longest; where all wait for each other, the one that holds least. None while
        one is going."""
        if any(upload.refusal for upload in self.uploads):
            return None
        if all(upload.is_waiting for upload in self.uploads):
            return min(self.uploads, key=lambda upload: upload.held, default=None)
        late = [upload for upload in self.uploads if upload.is_late(now)]
        return max(late, key=lambda upload: (upload.seconds_left(now), upload.held), default=None)

    def least_rate(self, now: float, within: float) -> PooledUpload | None:
        """Return the upload that comes at the lowest rate of those that will not be complete within so many
        seconds, although it may be complete in time. None while one is going."""
        if any(upload.refusal for upload in self.uploads):
            return None
        slow = [upload for upload in self.uploads if upload.is_late(now, within)]
        return min(slow, key=lambda upload: (upload.rate(now), -upload.held), default=None)

    def _rest(self, upload: PooledUpload) -> int:
        return self._part(upload.claim(upload.held)) - self._part(upload.held)

    def _part(self, size: int) -> int:
        return min(size, self._total)
