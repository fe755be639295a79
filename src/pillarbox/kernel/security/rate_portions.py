"""One node's part of the limits that it shares with other nodes (docs/decisions/0054).

A window is one second of one team. The node begins it by itself, with the first request, and may let through
its equal part before it has heard from the database. It asks there for a portion as soon as it has let
through more than the few that need not be told (`UNTOLD`). The answer decides from then on: the node lets
through what was reserved for it, and nothing more, until the window is over. What it let through before that
is told with the next question, so it counts whoever was first. A node that is alone has all of the limit, and
asks nothing.

All processes of the node share one slot for each team. Whichever takes the request that makes a question due
asks it, for all; one that dies without an answer delays the next question by `ASK_SECONDS`.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.process import shared_memory
from pillarbox.kernel.security.rate_limit import SECOND, WindowState
from pillarbox.kernel.security.shared_slots import SharedSlots

SLOT: Final = struct.Struct("<16sdddIIIIIIII")

PATIENCE: Final = 0.008
"""Seconds that a request may wait for a portion."""

ASK_SECONDS: Final = 1.0
"""After so long without an answer the question is given up."""

UNTOLD: Final = 4
"""The other nodes together let through at most a fourth of the limit before they report it."""

FORGIVEN: Final = 20
"""A twentieth of the limit is never told, so a team that is far below it asks nothing."""

SMALLEST: Final = 4
"""A portion is at least a fourth of the node's equal part."""

ROUNDING: Final = 0.001
"""An end so near to a second after the beginning is just that: the database has microseconds."""

AHEAD: Final = 50
"""The next portion is asked for when less than a fiftieth of the limit is left."""


@dataclass(slots=True)
class RateWindow:
    """Hold a window as this node sees it, in seconds of boot time.

        equal part   = limit ÷ nodes
        may let through = reserved if is_answered, else the equal part
        owed         = max(0, let_through - max(told, reserved)) + carried
        wanted       = max(¼ equal part, last_demand - max(let_through, reserved), refused), at most limit
        remaining    = min(limit, unreserved + reserved) - let_through

    `asked_at` is when the question that has no answer yet was asked, 0 where there is none. `unreserved` is
    what the last answer said that no node has. `last_demand` is what the window before let through and
    refused. `refused` counts requests since the last answer. `carried` was let through in earlier windows and
    is not told yet. The database was told of `told` in this window, and reserved `reserved` for this node.
    """

    ends_at: float = 0.0
    began_at: float = 0.0
    asked_at: float = 0.0
    let_through: int = 0
    reserved: int = 0
    unreserved: int = 0
    last_demand: int = 0
    refused: int = 0
    is_answered: int = 0
    carried: int = 0
    told: int = 0

    @property
    def owed(self) -> int:
        """The number of requests that the node let through and has not reported yet."""
        return max(0, self.let_through - max(self.told, self.reserved)) + self.carried


class Offer(NamedTuple):
    """The decision on a request: whether the caller must ask for a portion, and may wait for it."""

    taken: WindowState
    must_ask: bool
    may_wait: bool


class QuotaRequest(NamedTuple):
    """A node's question to the database: `owed` was let through and not reported yet; `wanted` is what it
    would like to have. The window began at `began`, `age` seconds ago; `told` of it are reserved, whatever is
    granted."""

    key: bytes
    limit: int
    owed: int
    wanted: int
    told: int
    age: float
    began: float


class QuotaGrant(NamedTuple):
    """The answer to a question: the requests granted; those left that no node has; the seconds until the
    window of all nodes ends."""

    granted: int
    left: int
    seconds: float


class Portions:
    """The portions of all teams at this node."""

    def __init__(self, fd: int, clock: Clock) -> None:
        self._clock = clock
        begin, end = shared_memory.WINDOWS, shared_memory.WINDOWS + shared_memory.PORTIONS
        self._slots = SharedSlots(fd, SLOT, begin, end)

    def take(self, key: bytes, limit: int, nodes: int, *, again: bool = False) -> Offer:
        """Count one request of `key`, or refuse it without counting. `again`: it was counted as waiting."""
        offset = self._slots.lock(key)
        try:
            where, window = self._read(offset, key)
            now = self._clock.boottime()
            if window.ends_at <= now:
                window = _next(window, limit, nodes, now)
            allowed = window.let_through < min(limit, _ceiling(window, limit, nodes, now))
            if allowed:
                window.let_through += 1
            elif not again:
                window.refused += 1
            is_asked = window.asked_at > 0 and now - window.asked_at < ASK_SECONDS
            is_urgent = not allowed and window.refused == 1 and not again
            must_ask = (is_urgent or not is_asked) and _needs_answer(window, limit, nodes, allowed=allowed)
            if must_ask:
                window.asked_at = now
            self._write(where, key, window)
        finally:
            self._slots.unlock(offset)
        may_wait = nodes > 1 and not allowed and window.asked_at > 0 and now - window.asked_at < PATIENCE
        remaining = _remaining(window, limit) if allowed else 0
        taken = WindowState(allowed, limit, remaining, max(1, math.ceil(window.ends_at - now)))
        return Offer(taken, must_ask, may_wait)

    def question(self, key: bytes, limit: int, nodes: int) -> QuotaRequest | None:
        """Return the question to ask now; None if the window is over, or another process has asked."""
        offset = self._slots.lock(key)
        try:
            where, window = self._read(offset, key)
            now = self._clock.boottime()
            if window.ends_at <= now or not window.asked_at:
                return None
            wanted, owed = _wanted(window, limit, nodes), window.owed
            window.told, window.carried = max(window.let_through, window.told, window.reserved), 0
            self._write(where, key, window)
        finally:
            self._slots.unlock(offset)
        return QuotaRequest(
            key=key,
            limit=limit,
            owed=owed,
            wanted=wanted,
            told=window.told,
            age=now - window.began_at,
            began=window.began_at,
        )

    def apply(self, question: QuotaRequest, answer: QuotaGrant, sent: float) -> None:
        """Take the database's answer into the window; `sent` is the boot time at which the question was sent.
        An answer that comes after the end of the window on this node has no effect."""
        offset = self._slots.lock(question.key)
        try:
            where, window = self._read(offset, question.key)
            if window.began_at == question.began:
                _answered(window, question, answer, sent + answer.seconds)
                self._write(where, question.key, window)
        finally:
            self._slots.unlock(offset)

    def _read(self, offset: int, key: bytes) -> tuple[int, RateWindow]:
        where, is_found = self._slots.find(offset, key)
        return where, RateWindow(
            *SLOT.unpack_from(self._slots.memory, where)[1:]
        ) if is_found else RateWindow()

    def _write(self, where: int, key: bytes, w: RateWindow) -> None:
        counts = (
            w.let_through,
            w.reserved,
            w.unreserved,
            w.last_demand,
            w.refused,
            w.is_answered,
            w.carried,
            w.told,
        )
        SLOT.pack_into(self._slots.memory, where, key, w.ends_at, w.began_at, w.asked_at, *counts)


def _answered(window: RateWindow, question: QuotaRequest, answer: QuotaGrant, end: float) -> None:
    if abs(end - window.began_at - SECOND) < ROUNDING:
        end = window.began_at + SECOND
    told = question.told
    if window.is_answered and end > window.ends_at + SECOND / 2:
        # The window of all nodes was over a moment before ours, so this is a portion of the next one.
        told = max(0, told - window.reserved)
        window.last_demand, window.let_through = (
            window.let_through,
            max(0, window.let_through - window.reserved),
        )
        window.reserved, window.began_at = 0, end - SECOND
        window.told = told
    window.reserved = max(window.reserved, told) + answer.granted
    window.unreserved, window.ends_at = answer.left, end
    window.is_answered, window.asked_at, window.refused = 1, 0.0, 0


def _next(window: RateWindow, limit: int, nodes: int, now: float) -> RateWindow:
    """Return the window that begins now."""
    if now >= window.ends_at + SECOND:
        return RateWindow(ends_at=now + SECOND, began_at=now)
    if nodes == 1:
        return RateWindow(ends_at=now + SECOND, began_at=now)
    forgiven = limit // (FORGIVEN * (nodes - 1))
    carried = min(_untold(limit, nodes), max(0, window.owed - forgiven))
    return RateWindow(
        ends_at=now + SECOND, began_at=now, last_demand=window.let_through + window.refused, carried=carried
    )


def _wanted(window: RateWindow, limit: int, nodes: int) -> int:
    """Return the number that the window will likely need besides what it has, at least a portion that is
    worth a question; 0 where none is left."""
    if window.is_answered and not window.unreserved:
        return 0
    smallest = -(-limit // (SMALLEST * nodes))
    likely = window.last_demand - max(window.let_through, window.reserved)
    return min(limit, max(smallest, likely, window.refused))


def _untold(limit: int, nodes: int) -> int:
    return limit // (UNTOLD * max(1, nodes - 1))


def _ceiling(window: RateWindow, limit: int, nodes: int, now: float) -> int:
    """Return the number of requests that may be let through in this window. A node whose equal part is
    nothing lets one through when the answer takes too long, so that no team is locked out by a slow database.
    """
    if window.is_answered:
        return window.reserved
    own = limit // nodes
    is_late = window.asked_at > 0 and now - window.asked_at >= PATIENCE
    return max(1, own) if is_late else own


def _needs_answer(window: RateWindow, limit: int, nodes: int, *, allowed: bool) -> bool:
    if nodes == 1:
        return False
    if not window.is_answered:
        return not allowed or window.owed > _untold(limit, nodes)
    is_short = window.reserved - window.let_through < max(1, limit // AHEAD)
    return window.owed > 0 or (window.unreserved > 0 and is_short)


def _remaining(window: RateWindow, limit: int) -> int:
    """Return how many requests remain, as far as this node knows."""
    free = limit - window.let_through
    if window.is_answered:
        free = min(free, window.unreserved + window.reserved - window.let_through)
    return max(0, free)
